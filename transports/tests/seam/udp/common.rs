//! Devices that send each other packets.

use std::net::SocketAddr;

use doorbell_core::encap::{Path, PathId};
use doorbell_core::nic::{Flow, Inbox, Outbox, Way};
use doorbell_core::payload::Payload;
use doorbell_core::wire::{Bth, Extensions, Headers, Malformed, Opcode, Packet, Psn, Qpn};
use doorbell_kit::lab::Lab;
use doorbell_transports::udp::Udp;
use doorbell_transports::{Address, Device};

/// What came.
#[derive(Default)]
pub struct Seen {
    /// Sequence numbers and lengths.
    pub packets: Vec<(u32, usize)>,
    pub malformed: usize,
    pub back: Option<Way>,
}

impl Inbox for Seen {
    fn packet<P: Payload>(&mut self, flow: Flow<'_>, packet: &Packet<P>) {
        self.packets.push((packet.headers.bth.psn().get(), packet.payload.len()));
        let Flow::Network(_, outer) = flow else { panic!("by a network") };
        self.back = Some(Way::Network(*outer).back());
    }

    fn malformed(&mut self, _: Malformed) {
        self.malformed += 1;
    }

    fn gone(&mut self, _: PathId) {}
}

pub fn headers(psn: u32) -> Headers {
    let bth = Bth::new(Opcode::RcSendOnly, Qpn::new(2), Psn::new(psn));
    Headers { bth, extensions: Extensions::None }
}

pub fn open(at: &str) -> Udp {
    Udp::open(at.parse().expect("an address")).expect("nobody has it")
}

pub fn socket(device: &Udp) -> SocketAddr {
    let &Address::Udp(address) = device.address() else { panic!("a socket's") };
    address
}

pub fn path(device: &mut Udp, to: &Udp) -> Path {
    let way = device.reach(to.address()).expect("it can be reached").expect("at once");
    way.path(PathId(0))
}

pub fn send(device: &mut Udp, path: &Path, psn: u32, len: usize) {
    device.push(path, headers(psn), &vec![psn as u8; len][..]).expect("there is room");
    device.flush();
}

pub fn until(what: &str, mut is: impl FnMut() -> bool) {
    doorbell_kit::until(what, || is().then_some(()));
}

/// Sends packets to and fro until both have sockets for each other.
pub fn acquaint(near: &mut Udp, far: &mut Udp) -> (Path, Path) {
    acquaint_where((near, far), |far, seen| {
        far.receive(seen);
    })
}

/// The same of two devices of which the far one is in a lab's far namespace, where a device must be
/// driven to open sockets.
pub fn acquaint_across(lab: &Lab, near: &mut Udp, far: &mut Udp) -> (Path, Path) {
    acquaint_where((near, far), |far, seen| {
        lab.far.within(|| far.receive(seen));
    })
}

fn acquaint_where(
    (near, far): (&mut Udp, &mut Udp),
    mut turn: impl FnMut(&mut Udp, &mut Seen),
) -> (Path, Path) {
    let (there, back) = (path(near, far), path(far, near));
    let (mut seen, mut psn) = (Seen::default(), 0);
    until("sockets for each other", || {
        send(near, &there, psn, 8);
        send(far, &back, psn, 8);
        psn += 1;
        near.receive(&mut seen);
        turn(far, &mut seen);
        near.connected() > 0 && far.connected() > 0
    });
    until("the last of them", || {
        near.receive(&mut seen);
        turn(far, &mut seen);
        seen.packets.len() == 2 * psn as usize
    });
    assert_eq!(seen.malformed, 0);
    (there, back)
}
