//! A device, and the way to the other end's.

use std::process;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use doorbell_core::encap::{Full, Path, PathId};
use doorbell_core::nic::{Flow, Inbox, Numbering};
use doorbell_core::payload::Payload;
use doorbell_core::wire::{Bth, Extensions, Headers, Malformed, Opcode, Packet, PathMtu, Psn, Qpn};
use doorbell_transports::{Address, AnyDevice, Device, Spec};
use serde_json::json;

use crate::perf::Plan;
use crate::perf::pattern::Pattern;
use crate::perf::peer::Peer;

/// How long the other end's device may take to be found, or to answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// The time between two of the first packets.
const KNOCK: Duration = Duration::from_millis(1);

/// How messages are cut into packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shape {
    /// The bytes of a message.
    pub size: usize,
    /// The most of them in a packet.
    pub mtu: usize,
    /// How many packets a message takes.
    pub packets: u64,
}

impl Shape {
    fn new(size: usize, mtu: PathMtu) -> anyhow::Result<Self> {
        let len = u32::try_from(size).context("--size is at most 4 GiB")?;
        Ok(Self { size, mtu: mtu.bytes(), packets: mtu.packets(len).into() })
    }

    /// The place of a packet in its message.
    #[inline]
    fn place(&self, number: u64) -> u64 {
        if self.packets == 1 { 0 } else { number % self.packets }
    }

    /// The length of the packet of a number.
    #[inline]
    pub fn len(&self, number: u64) -> usize {
        (self.size - self.place(number) as usize * self.mtu).min(self.mtu)
    }

    #[inline]
    fn opcode(&self, number: u64) -> Opcode {
        match self.place(number) {
            0 if self.packets == 1 => Opcode::RcSendOnly,
            0 => Opcode::RcSendFirst,
            place if place + 1 == self.packets => Opcode::RcSendLast,
            _ => Opcode::RcSendMiddle,
        }
    }
}

/// A device, and the way to the other end's.
pub struct Link<D> {
    pub device: D,
    /// The queue pair number that is spoken to here.
    pub own: Qpn,
    pub shape: Shape,
    path: Path,
    other: Qpn,
    pattern: Pattern,
    /// The number of the next packet.
    next: u64,
}

impl Link<AnyDevice> {
    /// Opens the device that `text` names, and finds the other end's.
    pub fn open(text: &str, plan: &Plan, peer: &mut Peer) -> anyhow::Result<Self> {
        // So that several of these on an interface see their own packets.
        let tag = 1 + process::id() % 63;
        let numbering = Numbering { tag, ..Numbering::default() };
        let own = Qpn::new(tag << (24 - numbering.tag_bits) | 0x2A);
        let spec: Spec = text.parse()?;
        Self::find(spec.open(numbering)?, own, plan, peer)
    }
}

impl<D: Device> Link<D> {
    fn find(mut device: D, own: Qpn, plan: &Plan, peer: &mut Peer) -> anyhow::Result<Self> {
        let &doorbell_transports::Capabilities { name, mtu, .. } = device.capabilities();
        let mine = json!({
            "device": name,
            "address": device.address().to_string(),
            "queue_pair": own.get(),
            "mtu": mtu as u8,
        });
        let theirs = peer.swap(&mine)?;
        if theirs["device"] != mine["device"] {
            bail!("the other end's device is {}, and this one's {name}", theirs["device"]);
        }
        let address: Address = theirs["address"].as_str().unwrap_or_default().parse()?;
        let other = theirs["queue_pair"].as_u64().context("the other end's queue pair")?;
        let code = theirs["mtu"].as_u64().context("the other end's MTU")?;
        let their_mtu = PathMtu::from_code(code as u8).context("the other end's MTU")?;

        let path = reach(&mut device, &address)?;
        let mut link = Self {
            device,
            own,
            shape: Shape::new(plan.size, mtu.min(their_mtu))?,
            path,
            other: Qpn::new(other as u32),
            pattern: Pattern::new(mtu.bytes()),
            next: 0,
        };
        link.knock(peer)?;
        Ok(link)
    }

    /// Sends packets until both ends have heard one: an interface that was just taken up loses the
    /// first, and so may a switch.
    fn knock(&mut self, peer: &mut Peer) -> anyhow::Result<()> {
        let mut ear = Ear { own: self.own, heard: false };
        let mut round = |link: &mut Self| {
            link.ask(false);
            let since = Instant::now();
            while since.elapsed() < KNOCK {
                link.device.receive(&mut ear);
                link.device.settle();
            }
            ear.heard
        };
        let start = Instant::now();
        while !round(self) {
            if start.elapsed() > PATIENCE {
                bail!(
                    "no packet of the other end came within {PATIENCE:?}: is it on this network?"
                );
            }
        }
        peer.meet(|| {
            round(self);
        })?;
        // Nothing that counts is sent while the other end may still be listening for this.
        peer.swap(&json!("begin")).map(drop)
    }

    /// The number of the next packet.
    #[inline]
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Pushes the next packet, if there is room.
    #[inline]
    pub fn push(&mut self, last: bool) -> Result<(), Full> {
        let (number, shape) = (self.next, &self.shape);
        let psn = Psn::new(number as u32);
        let bth = Bth::new(shape.opcode(number), self.other, psn).with_solicited(last);
        let payload = self.pattern.of(number, shape.len(number));
        let headers = Headers { bth, extensions: Extensions::None };
        self.device.push(&self.path, headers, payload)?;
        self.next += 1;
        Ok(())
    }

    /// Asks the other end how far it is; whether there was room for that.
    pub fn ask(&mut self, last: bool) -> bool {
        let psn = Psn::new(self.next as u32);
        let bth = Bth::new(Opcode::RcSendOnly, self.other, psn);
        let bth = bth.with_ack_request(true).with_solicited(last);
        let headers = Headers { bth, extensions: Extensions::None };
        let pushed = self.device.push(&self.path, headers, &[][..]);
        self.device.flush();
        pushed.is_ok()
    }

    /// Sends something else than the packets that are numbered; whether there was room for it.
    pub fn send(&mut self, payload: &[u8]) -> bool {
        let bth = Bth::new(Opcode::RcSendOnly, self.other, Psn::new(0));
        let headers = Headers { bth, extensions: Extensions::None };
        let pushed = self.device.push(&self.path, headers, payload);
        self.device.flush();
        pushed.is_ok()
    }

    /// Sends a message, packet by packet, as soon as there is room.
    #[inline]
    pub fn send_message(&mut self, last: bool, inbox: &mut impl Inbox) -> anyhow::Result<()> {
        for place in 1..=self.shape.packets {
            let mut patience = Patience::new();
            while self.push(last && place == self.shape.packets).is_err() {
                self.device.flush();
                self.device.receive(inbox);
                self.device.settle();
                patience.spend("room for a packet")?;
            }
        }
        self.device.flush();
        Ok(())
    }
}

fn reach(device: &mut impl Device, address: &Address) -> anyhow::Result<Path> {
    let start = Instant::now();
    loop {
        if let Some(way) = device.reach(address)? {
            return Ok(way.path(PathId(1)));
        }
        device.receive(&mut Nobody);
        if start.elapsed() > PATIENCE {
            bail!("{address} was not found within {PATIENCE:?}");
        }
    }
}

/// Waits busily, and not for ever.
pub struct Patience {
    looks: u32,
    since: Option<Instant>,
}

impl Patience {
    pub const fn new() -> Self {
        Self { looks: 0, since: None }
    }

    /// One more look that found nothing of `what`. How long they have been, now and then.
    #[inline]
    pub fn spend(&mut self, what: &str) -> anyhow::Result<Option<Duration>> {
        self.looks += 1;
        // Reading the clock each time would cost more than the look.
        if self.looks.is_multiple_of(1 << 12) { self.judge(what).map(Some) } else { Ok(None) }
    }

    #[cold]
    fn judge(&mut self, what: &str) -> anyhow::Result<Duration> {
        let waited = self.since.get_or_insert_with(Instant::now).elapsed();
        if waited > PATIENCE {
            bail!("{what} did not come within {PATIENCE:?}: lost, or the other end has gone");
        }
        Ok(waited)
    }
}

/// Takes what nobody waits for.
struct Nobody;

impl Inbox for Nobody {
    fn packet<P: Payload>(&mut self, _: Flow<'_>, _: &Packet<P>) {}
    fn malformed(&mut self, _: Malformed) {}
    fn gone(&mut self, _: PathId) {}
}

/// Hears whether packets come for a queue pair.
struct Ear {
    own: Qpn,
    heard: bool,
}

impl Inbox for Ear {
    fn packet<P: Payload>(&mut self, _: Flow<'_>, packet: &Packet<P>) {
        self.heard |= packet.headers.bth.destination() == self.own;
    }
    fn malformed(&mut self, _: Malformed) {}
    fn gone(&mut self, _: PathId) {}
}
