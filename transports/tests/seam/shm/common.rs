//! What the tests share.

use std::sync::atomic::{AtomicU32, Ordering};

use doorbell_core::encap::{Full, Path, PathId};
use doorbell_core::nic::{Flow, Inbox, Outbox, Way};
use doorbell_core::payload::Payload;
use doorbell_core::wire::{Bth, Extensions, Headers, Malformed, Opcode, Packet, Psn, Qpn};
pub use doorbell_kit::{PATIENCE, is_ready, sleep};
use doorbell_transports::shm::Shm;
use doorbell_transports::{Address, Device, ReachError};

/// A name that no other test has, of this process or another.
pub fn name(what: &str) -> String {
    static NAMES: AtomicU32 = AtomicU32::new(0);
    let number = NAMES.fetch_add(1, Ordering::Relaxed);
    format!("test/{}/{number}/{what}", std::process::id())
}

/// What came in, in order.
#[derive(Default)]
pub struct Heard {
    pub packets: Vec<(PathId, u32, Vec<u8>)>,
    pub gone: Vec<PathId>,
    pub malformed: usize,
}

impl Inbox for Heard {
    fn packet<P: Payload>(&mut self, flow: Flow<'_>, packet: &Packet<P>) {
        let Flow::Link(link) = flow else { panic!("a packet from {flow:?}") };
        let mut bytes = vec![0; packet.payload.len()];
        packet.payload.copy_to(&mut bytes);
        self.packets.push((link, packet.headers.bth.psn().get(), bytes));
    }

    fn malformed(&mut self, _: Malformed) {
        self.malformed += 1;
    }

    fn gone(&mut self, link: PathId) {
        self.gone.push(link);
    }
}

/// Pushes a packet that bears a number.
pub fn push(device: &mut Shm, link: PathId, number: u32, payload: &[u8]) -> Result<u64, Full> {
    let bth = Bth::new(Opcode::RcSendOnly, Qpn::new(7), Psn::new(number));
    device.push(&Path::link(link), Headers { bth, extensions: Extensions::None }, payload)
}

/// Sends one.
pub fn send(device: &mut Shm, link: PathId, number: u32, payload: &[u8]) -> u64 {
    let ticket = push(device, link, number, payload).expect("room");
    device.flush();
    ticket
}

/// A turn of a device without a NIC, which owes nobody an answer.
pub fn turn(device: &mut Shm, heard: &mut impl Inbox) -> usize {
    let found = device.receive(heard);
    device.settle(|_| false);
    found
}

/// Calls until it is true; panics if that takes for ever.
#[track_caller]
pub fn until(mut done: impl FnMut() -> bool) {
    doorbell_kit::until("what is waited for", || done().then_some(()));
}

/// Asks for the way until it is known.
pub fn reach_with(
    device: &mut Shm,
    peer: &Address,
    mut meanwhile: impl FnMut(),
) -> Result<PathId, ReachError> {
    let way = doorbell_kit::until("a link", || {
        let found = device.reach(peer).transpose();
        if found.is_none() {
            meanwhile();
        }
        found
    });
    match way? {
        Way::Link(link) => Ok(link),
        way => panic!("a way in shared memory is {way:?}"),
    }
}

/// A device's link to another of this thread.
pub fn reach(device: &mut Shm, peer: &mut Shm) -> PathId {
    let address = peer.address().clone();
    let own = device.address().clone();
    reach_with(device, &address, || {
        let _ = peer.reach(&own);
    })
    .expect("a link")
}

/// Two devices and their links to each other.
pub fn two() -> [(Shm, PathId); 2] {
    let [a, b] = ["a", "b"].map(|what| Shm::join(&name(what)).expect("a name"));
    linked(a, b)
}

/// The same without names.
pub fn pair() -> [(Shm, PathId); 2] {
    let [a, b] = Shm::pair().expect("a pair");
    linked(a, b)
}

fn linked(mut a: Shm, mut b: Shm) -> [(Shm, PathId); 2] {
    let to_b = reach(&mut a, &mut b);
    let to_a = reach(&mut b, &mut a);
    [(a, to_b), (b, to_a)]
}

/// Numbers that look random, from a seed.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut x = self.0;
        x = (x ^ x >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        x = (x ^ x >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        x ^ x >> 31
    }

    pub fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }
}
