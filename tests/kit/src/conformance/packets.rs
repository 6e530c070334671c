//! Test packets whose contents follow from their numbers, and the two devices between which they
//! go.

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

/// The count of sequence numbers, by which packets are distinguished.
const NUMBERS: u32 = 1 << 24;

/// The number of a queue pair of the process to which the default numbering belongs.
fn destination() -> Qpn {
    let Numbering { tag, tag_bits, .. } = Numbering::default();
    Qpn::new(tag << (24 - tag_bits) | 0x77)
}

/// The headers of packet `number`.
pub(super) fn headers(number: u32) -> Headers {
    let bth = |opcode| Bth::new(opcode, destination(), Psn::new(number));
    let reth =
        Reth { address: RemoteAddr(number.into()), rkey: Rkey(7), length: DmaLength(number) };
    // The kinds are not in a regular order, so that runs of packets of one kind occur, too.
    match number % 23 {
        0 => {
            let extensions = Extensions::RethImm(reth, Imm(number));
            Headers { bth: bth(Opcode::RcWriteOnlyImmediate), extensions }
        }
        1..6 => Headers { bth: bth(Opcode::RcWriteOnly), extensions: Extensions::Reth(reth) },
        _ => Headers { bth: bth(Opcode::RcSendOnly), extensions: Extensions::None },
    }
}

/// The payload of packet `number` at a length of `len` bytes.
pub(super) fn payload(number: u32, len: usize) -> Vec<u8> {
    let byte = |at: usize| (number as usize).wrapping_mul(31).wrapping_add(at * 7) as u8;
    (0..len).map(byte).collect()
}

/// Gives packet `number` to a device.
pub(super) fn push(
    device: &mut impl Device,
    path: &Path,
    number: u32,
    len: usize,
) -> Result<u64, Full> {
    device.push(path, headers(number), &payload(number, len)[..])
}

/// Sends packet `number`, for which there must be room.
pub(super) fn send(device: &mut impl Device, path: &Path, number: u32, len: usize) {
    push(device, path, number, len).expect("nothing waits: there is room for a packet");
    device.flush();
}

/// An inbox that records the packets that arrive, and panics at a packet that differs from its
/// number's.
#[derive(Default)]
pub(super) struct Received {
    /// The numbers and lengths of the packets, in the order of their arrival.
    pub packets: Vec<(u32, usize)>,
    /// The way back to the sender of the last packet.
    pub back: Option<Way>,
    /// The links whose other end has gone.
    pub gone: Vec<PathId>,
}

impl Inbox for Received {
    fn packet<P: Payload>(&mut self, flow: Flow<'_>, packet: &Packet<P>) {
        let number = packet.headers.bth.psn().get();
        let expected = headers(number);
        // The encapsulation chooses the padding.
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

impl Received {
    pub(super) fn numbers(&self) -> impl Iterator<Item = u32> {
        self.packets.iter().map(|&(number, _)| number)
    }

    /// Asserts that packets have arrived in the order in which they were sent, each at most once.
    pub(super) fn in_order(&self) {
        assert!(self.numbers().is_sorted_by(|a, b| a < b && *b < NUMBERS), "not in order");
    }
}

/// Takes packets that have arrived, and acknowledges them to the sender's device.
pub(super) fn take(device: &mut impl Device, received: &mut Received) -> usize {
    let before = received.packets.len();
    let taken = device.receive(received);
    assert!(taken > 0 || received.packets.len() == before, "who took packets said to find none");
    device.settle(|_| false);
    taken
}

/// Finds the path to a peer in another process.
pub(super) fn path_to(device: &mut impl Device, peer: &Address) -> Path {
    until(&format!("reaching {peer}"), || {
        take(device, &mut Received::default());
        device.reach(peer).expect("it is there").map(|way| way.path(PathId(0)))
    })
}

/// Two devices with the paths between them.
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

    /// The longest payload that both devices allow.
    pub fn longest(&self) -> usize {
        let [near, far] = [&self.near, &self.far].map(|device| device.capabilities().mtu.bytes());
        near.min(far)
    }

    /// Has the far device take packets until `count` packets have come.
    pub fn receive(&mut self, received: &mut Received, count: usize) {
        until(&format!("{count} packets"), || {
            take(&mut self.far, received);
            // A lossless sender learns what was delivered; other devices have work of their own.
            take(&mut self.near, &mut Received::default());
            (received.packets.len() >= count).then_some(())
        });
    }
}

/// Waits until a device's readiness is signalled, and panics if that takes longer than
/// [`PATIENCE`].
pub(super) fn sleep(device: &mut impl Device) {
    if !sys::readable(device.readiness(), PATIENCE) {
        let mut received = Received::default();
        while take(device, &mut received) > 0 {}
        let missed = (received.packets.len(), received.gone.len());
        let counted = device.statistics();
        panic!("asleep for {PATIENCE:?}; (packets, links left) missed: {missed:?}; {counted:?}");
    }
}
