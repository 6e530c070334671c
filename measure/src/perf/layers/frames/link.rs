//! A device, and the way to the other end's.

use std::process;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use doorbell_core::encap::{Full, Path, PathId};
use doorbell_core::nic::Numbering;
use doorbell_core::wire::{Bth, Extensions, Headers, Imm, Opcode, PathMtu, Psn, Qpn};
use doorbell_transports::{Address, AnyDevice, Device, Spec};
use serde_json::json;

use super::arrivals::Arrivals;
use super::shape::Shape;
use crate::perf::Plan;
use crate::perf::ends::peer::Peer;
use crate::perf::shared::ledger::Ledger;
use crate::perf::shared::patience::{LONGEST, Patience};
use crate::perf::shared::pattern::Pattern;
use crate::perf::shared::stream::{Lane, Window};

/// The time between two of the first packets.
const KNOCK: Duration = Duration::from_millis(1);

/// A device, and the way to the other end's.
pub struct Link<D> {
    pub device: D,
    /// The packets that have arrived.
    pub arrivals: Arrivals,
    pub shape: Shape,
    path: Path,
    other: Qpn,
    pattern: Pattern,
    /// The number of the next packet.
    next: u64,
    _seat: Seat,
}

/// The queue pair of an interface that is addressed, and the other devices there.
pub struct Seat {
    own: Qpn,
    /// The sleeping devices that share the interface.
    _others: Vec<AnyDevice>,
}

impl Seat {
    /// Opens the device that `text` names, and those beside it.
    pub fn take(text: &str, plan: &Plan) -> anyhow::Result<(AnyDevice, Self)> {
        // So that several of these on an interface see their own packets.
        let tag = 1 + process::id() % 63;
        let numbering = Numbering { tag, ..Numbering::default() };
        let own = Qpn::new(tag << (24 - numbering.tag_bits) | 0x2A);
        let spec: Spec = text.parse()?;
        let device = spec.open(numbering)?;
        let device = if plan.offload { device } else { device.without_offload() };
        let others = (0..plan.others as u32).map(|other| beside(&spec, (tag + other) % 63 + 1));
        Ok((device, Self { own, _others: others.collect::<anyhow::Result<_>>()? }))
    }
}

/// A device at the same interface with queue pairs of its own, as another process would have it,
/// that sleeps.
fn beside(spec: &Spec, tag: u32) -> anyhow::Result<AnyDevice> {
    if !matches!(spec, Spec::Packet(_) | Spec::PacketV2(..)) {
        bail!("--others share an interface: that is with --device packet and packet-v2");
    }
    let mut device = spec.open(Numbering { tag, ..Numbering::default() })?;
    device.arm(None).context("another device at the same interface, which is to sleep")?;
    Ok(device)
}

impl<D: Device> Link<D> {
    /// Finds the other end's device.
    pub fn find(mut device: D, seat: Seat, plan: &Plan, peer: &mut Peer) -> anyhow::Result<Self> {
        let own = seat.own;
        let &doorbell_transports::Capabilities { name, mtu, .. } = device.capabilities();
        let mine = json!({
            "device": name,
            "address": device.address().to_string(),
            "queue_pair": own.get(),
            "mtu": mtu.code(),
        });
        let theirs = peer.swap(&mine)?;
        if theirs["device"] != mine["device"] {
            bail!("the other end's device is {}, and this one's {name}", theirs["device"]);
        }
        let address: Address = theirs["address"].as_str().unwrap_or_default().parse()?;
        let other = theirs["queue_pair"].as_u64().context("the other end's queue pair")?;
        let code = theirs["mtu"].as_u64().unwrap_or_default();
        let their_mtu = PathMtu::from_code(code as u8).context("the other end's MTU")?;

        let shape = Shape::new(plan.size, mtu.min(their_mtu))?;
        let mut arrivals = Arrivals::new(own, shape);
        let mut link = Self {
            path: reach(&mut device, &address, &mut arrivals)?,
            device,
            arrivals,
            shape,
            other: Qpn::new(other as u32),
            pattern: Pattern::new(shape.mtu),
            next: 0,
            _seat: seat,
        };
        link.knock(peer)?;
        Ok(link)
    }

    /// Sends packets until both ends have heard one: an interface that was just taken up loses the
    /// first, and so may a switch. Until the other end has heard one, it may also need answers of
    /// this device to find it.
    fn knock(&mut self, peer: &mut Peer) -> anyhow::Result<()> {
        let start = Instant::now();
        while !self.knock_once() {
            if start.elapsed() > LONGEST {
                bail!("no packet of the other end came within {LONGEST:?}: is it on this network?");
            }
        }
        peer.meet(|| {
            self.knock_once();
            Ok(())
        })?;
        // Nothing that counts is sent while the other end may still be listening for this.
        peer.swap(&json!("begin"))?;
        self.arrivals = Arrivals::new(self.arrivals.own(), self.shape);
        Ok(())
    }

    fn knock_once(&mut self) -> bool {
        self.ask_now(false);
        let since = Instant::now();
        while since.elapsed() < KNOCK {
            self.look();
        }
        self.arrivals.heard
    }

    /// Tells the device that a message will be sent presently.
    #[inline]
    pub fn prepare(&mut self) {
        self.device.prepare(self.path.id());
    }

    /// Takes what has come; how many frames that were.
    #[inline]
    pub fn look(&mut self) -> usize {
        let found = self.device.receive(&mut self.arrivals);
        self.device.settle(|_| false);
        found
    }

    /// Pushes the next packet, if there is room. It is compiled into the loop that is timed, of
    /// which calls and saved registers are a part otherwise.
    #[inline(always)]
    fn push_next(&mut self, last: bool) -> Result<(), Full> {
        let (number, shape) = (self.next, &self.shape);
        let psn = Psn::new(number as u32);
        let bth = Bth::new(shape.opcode(number), self.other, psn).with_solicited(last);
        let payload = self.pattern.of(number, shape.len(number));
        let headers = Headers { bth, extensions: Extensions::None };
        self.device.push(&self.path, headers, payload)?;
        self.next += 1;
        Ok(())
    }

    /// Sends a message, packet by packet, as soon as there is room. Compiled into the loop that is
    /// timed, as [`push_next`](Self::push_next) is.
    #[inline(always)]
    pub fn send_message(&mut self, last: bool) -> anyhow::Result<()> {
        for left in (0..self.shape.packets).rev() {
            let last = last && left == 0;
            if self.push_next(last).is_err() {
                self.await_room(last)?;
            }
        }
        self.device.flush();
        Ok(())
    }

    /// Pushes the next packet when there is room.
    #[cold]
    fn await_room(&mut self, last: bool) -> anyhow::Result<()> {
        let mut patience = Patience::default();
        while self.push_next(last).is_err() {
            self.device.flush();
            self.look();
            patience.spend("room for a packet")?;
        }
        Ok(())
    }

    /// Sends a packet that bears the number of the next one, and is not counted.
    fn ask_now(&mut self, last: bool) {
        let psn = Psn::new(self.next as u32);
        let bth = Bth::new(Opcode::RcSendOnly, self.other, psn);
        let bth = bth.with_ack_request(true).with_solicited(last);
        let headers = Headers { bth, extensions: Extensions::None };
        // Where there is no room for it, it is asked again.
        let _ = self.device.push(&self.path, headers, &[][..]);
        self.device.flush();
    }
}

impl<D: Device> Lane for Link<D> {
    fn device(&self) -> Option<&'static str> {
        Some(self.device.capabilities().name)
    }

    fn window(&self) -> Window {
        self.shape.window(self.device.capabilities())
    }

    fn of_a_message(&self) -> u64 {
        self.shape.packets
    }

    #[inline]
    fn next(&self) -> u64 {
        self.next
    }

    #[inline]
    fn push(&mut self) -> bool {
        self.push_next(false).is_ok()
    }

    #[inline]
    fn flush(&mut self) -> anyhow::Result<()> {
        self.device.flush();
        Ok(())
    }

    fn ask(&mut self, last: bool) -> anyhow::Result<()> {
        self.ask_now(last);
        Ok(())
    }

    fn report(&mut self) -> bool {
        let bth = Bth::new(Opcode::RcSendOnlyImmediate, self.other, Psn::new(0));
        let headers = Headers { bth, extensions: Extensions::Imm(Imm(0)) };
        let report = self.arrivals.ledger.report();
        let pushed = self.device.push(&self.path, headers, &report[..]);
        self.device.flush();
        pushed.is_ok()
    }

    #[inline]
    fn receive(&mut self) -> anyhow::Result<bool> {
        Ok(self.look() > 0)
    }

    #[inline]
    fn ledger(&mut self) -> &mut Ledger {
        &mut self.arrivals.ledger
    }
}

fn reach(
    device: &mut impl Device,
    address: &Address,
    arrivals: &mut Arrivals,
) -> anyhow::Result<Path> {
    let start = Instant::now();
    loop {
        if let Some(way) = device.reach(address)? {
            return Ok(way.path(PathId(1)));
        }
        device.receive(arrivals);
        if start.elapsed() > LONGEST {
            bail!("{address} was not found within {LONGEST:?}: is it on this network?");
        }
    }
}
