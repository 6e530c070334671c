//! A device that records each packet as an event.

use doorbell_core::encap::{Full, Host, Path, PathId};
use doorbell_core::nic::{Flow, Inbox, Outbox};
use doorbell_core::payload::Payload;
use doorbell_core::time::Time;
use doorbell_core::wire::{Headers, Malformed, Packet};
use tracing::trace;

use super::inner::leave_to_inside;
use crate::device::Device;

/// A device around a device, which records each packet as an event of the level `TRACE`.
///
/// Where no subscriber wants those, each costs a look at a variable; where the program was built
/// with a lower maximum (`tracing`'s features `release_max_level_…`), nothing.
#[derive(Debug)]
pub struct Traced<D> {
    inside: D,
}

impl<D: Device> Traced<D> {
    /// Records what happens on the device `inside`.
    pub const fn new(inside: D) -> Self {
        Self { inside }
    }

    /// Returns the device inside.
    pub fn into_inside(self) -> D {
        self.inside
    }
}

/// Records an event with the fields of a packet.
macro_rules! tell {
    ($what:literal, $headers:expr, $len:expr $(, $name:ident = $value:expr)*) => {
        trace!(
            opcode = ?$headers.bth.opcode(),
            destination = %$headers.bth.destination(),
            psn = $headers.bth.psn().get(),
            ack = $headers.bth.ack_request(),
            extensions = ?$headers.extensions,
            len = $len,
            $($name = $value,)*
            $what
        )
    };
}

impl<D: Device> Outbox for Traced<D> {
    #[inline]
    fn push(&mut self, path: &Path, headers: Headers, payload: impl Payload) -> Result<u64, Full> {
        let pushed = self.inside.push(path, headers, payload);
        match pushed {
            Ok(ticket) => {
                tell!("push", headers, payload.len(), path = path.id().0, ticket = ticket);
            }
            Err(Full) => tell!("full", headers, payload.len(), path = path.id().0),
        }
        pushed
    }

    #[inline]
    fn prepare(&mut self, path: PathId) {
        self.inside.prepare(path);
    }

    #[inline]
    fn flush(&mut self) {
        trace!("flush");
        self.inside.flush();
    }

    #[inline]
    fn time(&self) -> Option<Time> {
        self.inside.time()
    }

    #[inline]
    fn delivered(&mut self, path: PathId) -> u64 {
        self.inside.delivered(path)
    }
}

/// The inbox that the device inside hands packets to.
struct TracedInbox<'a, I>(&'a mut I);

impl<I: Inbox> Inbox for TracedInbox<'_, I> {
    #[inline]
    fn packet<P: Payload>(&mut self, flow: Flow<'_>, packet: &Packet<P>) {
        let flow_number = match flow {
            Flow::Link(link) => u64::from(link.0),
            Flow::Network(number, _) => number,
        };
        tell!("packet", packet.headers, packet.payload.len(), flow = flow_number);
        self.0.packet(flow, packet);
    }

    #[inline]
    fn arrived(&mut self, at: Time) {
        self.0.arrived(at);
    }

    fn malformed(&mut self, why: Malformed) {
        trace!(%why, "malformed");
        self.0.malformed(why);
    }

    fn gone(&mut self, link: PathId) {
        trace!(link = link.0, "gone");
        self.0.gone(link);
    }

    fn port_closed(&mut self, at: Host, quoted: &[u8]) {
        trace!(gid = %at.gid, port = at.port.0, "port closed");
        self.0.port_closed(at, quoted);
    }
}

impl<D: Device> Device for Traced<D> {
    #[inline]
    fn receive(&mut self, inbox: &mut impl Inbox) -> usize {
        self.inside.receive(&mut TracedInbox(inbox))
    }

    fn arm(&mut self, until: Option<Time>) -> std::io::Result<()> {
        let armed = self.inside.arm(until);
        trace!(?until, ?armed, "arm");
        armed
    }

    fn disarm(&mut self) {
        trace!("disarm");
        self.inside.disarm();
    }

    leave_to_inside!(capabilities settle now address reach readiness trouble statistics grants);
}
