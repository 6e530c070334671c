//! Packets that tell what they should be, and the two ends between which they go.

use doorbell_core::encap::{Full, Path, PathId};
use doorbell_core::nic::{Flow, Inbox, Numbering, Way};
use doorbell_core::payload::Payload;
use doorbell_core::wire::{
    Bth, DmaLength, Extensions, Headers, Imm, Malformed, Opcode, Packet, Psn, Qpn, RemoteAddr,
    Reth, Rkey,
};
use doorbell_transports::{Address, Device};

use crate::rig::{PATIENCE, reach, until};
use crate::sys;

/// Packets are told apart by their sequence number.
const NUMBERS: u32 = 1 << 24;

/// A queue pair of the process that the default numbering is of.
fn destination() -> Qpn {
    let Numbering { tag, tag_bits, .. } = Numbering::default();
    Qpn::new(tag << (24 - tag_bits) | 0x77)
}

/// The headers of packet `number`.
pub(super) fn headers(number: u32) -> Headers {
    let bth = |opcode| Bth::new(opcode, destination(), Psn::new(number));
    let reth =
        Reth { address: RemoteAddr(number.into()), rkey: Rkey(7), length: DmaLength(number) };
    // Not in a regular turn, so that runs of one kind occur, too.
    match number % 23 {
        0 => {
            let extensions = Extensions::RethImm(reth, Imm(number));
            Headers { bth: bth(Opcode::RcWriteOnlyImmediate), extensions }
        }
        1..6 => Headers { bth: bth(Opcode::RcWriteOnly), extensions: Extensions::Reth(reth) },
        _ => Headers { bth: bth(Opcode::RcSendOnly), extensions: Extensions::None },
    }
}

/// The payload of packet `number`, if it is so long.
pub(super) fn payload(number: u32, len: usize) -> Vec<u8> {
    let byte = |at: usize| (number as usize).wrapping_mul(31).wrapping_add(at * 7) as u8;
    (0..len).map(byte).collect()
}

/// Encodes packet `number`.
pub(super) fn push(
    device: &mut impl Device,
    path: &Path,
    number: u32,
    len: usize,
) -> Result<u64, Full> {
    device.push(path, headers(number), &payload(number, len)[..])
}

/// Encodes packet `number` where there must be room for one, and sends it.
pub(super) fn send(device: &mut impl Device, path: &Path, number: u32, len: usize) {
    push(device, path, number, len).expect("nothing waits: there is room for a packet");
    device.flush();
}

/// What has arrived. Whatever is wrong with a packet by itself ends the test.
#[derive(Default)]
pub(super) struct Seen {
    /// The numbers and lengths of packets, in their order.
    pub packets: Vec<(u32, usize)>,
    /// The way back to whoever sent the last of them.
    pub back: Option<Way>,
    /// The links that were left.
    pub gone: Vec<PathId>,
}

impl Inbox for Seen {
    fn packet<P: Payload>(&mut self, flow: Flow<'_>, packet: &Packet<P>) {
        let number = packet.headers.bth.psn().get();
        let expected = headers(number);
        // Padding is the encapsulation's business.
        let bth = packet.headers.bth.with_pad(0);
        assert_eq!((bth, packet.headers.extensions), (expected.bth, expected.extensions));
        let mut bytes = vec![0; packet.payload.len()];
        packet.payload.copy_to(&mut bytes);
        assert!(bytes == payload(number, bytes.len()), "packet {number} is not what was sent");
        self.packets.push((number, bytes.len()));
        self.back = Some(match flow {
            Flow::Link(link) => Way::Link(link),
            Flow::Network(_, outer) => Way::Network(*outer).back(),
        });
    }

    fn malformed(&mut self, why: Malformed) {
        panic!("a packet arrived in pieces: {why}");
    }

    fn gone(&mut self, link: PathId) {
        self.gone.push(link);
    }
}

impl Seen {
    pub(super) fn numbers(&self) -> impl Iterator<Item = u32> {
        self.packets.iter().map(|&(number, _)| number)
    }

    /// Everything that arrived did so in the order in which it was sent, and once.
    pub(super) fn in_order(&self) {
        assert!(self.numbers().is_sorted_by(|a, b| a < b && *b < NUMBERS), "not in order");
    }
}

/// Takes what has arrived, and answers for it.
pub(super) fn take(device: &mut impl Device, seen: &mut Seen) -> usize {
    let before = seen.packets.len();
    let taken = device.receive(seen);
    assert!(taken > 0 || seen.packets.len() == before, "who took packets said to find none");
    device.settle(|_| false);
    taken
}

/// The path to a peer that answers, in another process.
pub(super) fn path_to(device: &mut impl Device, peer: &Address) -> Path {
    until(&format!("reaching {peer}"), || {
        take(device, &mut Seen::default());
        device.reach(peer).expect("it is there").map(|way| way.path(PathId(0)))
    })
}

/// Two devices that know each other.
pub(super) struct Pair<D> {
    pub near: D,
    pub far: D,
    pub to_far: Path,
    pub to_near: Path,
}

impl<D: Device> Pair<D> {
    pub fn new((mut near, mut far): (D, D)) -> Self {
        let to_far = reach(&mut near, &mut far);
        let to_near = reach(&mut far, &mut near);
        Self { near, far, to_far, to_near }
    }

    /// The longest payload that both allow.
    pub fn longest(&self) -> usize {
        let [near, far] = [&self.near, &self.far].map(|device| device.capabilities().mtu.bytes());
        near.min(far)
    }

    /// Has `far` take packets until it has so many.
    pub fn receive(&mut self, seen: &mut Seen, count: usize) {
        until(&format!("{count} packets"), || {
            take(&mut self.far, seen);
            // A lossless sender hears how far they came; others have work to do, too.
            take(&mut self.near, &mut Seen::default());
            (seen.packets.len() >= count).then_some(())
        });
    }
}

/// Waits on a device's readiness, which must tell within the time that nothing here takes.
pub(super) fn sleep(device: &mut impl Device) {
    if !sys::readable(device.readiness(), PATIENCE) {
        let mut seen = Seen::default();
        while take(device, &mut seen) > 0 {}
        let missed = (seen.packets.len(), seen.gone.len());
        let counted = device.statistics();
        panic!("asleep for {PATIENCE:?}; (packets, links left) missed: {missed:?}; {counted:?}");
    }
}
