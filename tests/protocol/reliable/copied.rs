//! Messages of which nothing is kept, at the corners that programs of well-behaved peers do not
//! come to.

use doorbell_core::encap::{Full, Path, PathId};
use doorbell_core::nic::*;
use doorbell_core::payload::Payload;
use doorbell_core::wire::*;

use crate::reliable::common::{Setup, Two, lossless, outcomes, short};

/// A device that has no room, or has and sends nothing, and may say that all was delivered.
#[derive(Clone, Copy)]
struct Nowhere {
    room: bool,
    delivers: bool,
}

impl Outbox for Nowhere {
    fn push(&mut self, _: &Path, _: Headers, _: impl Payload) -> Result<u64, Full> {
        if self.room { Ok(1) } else { Err(Full) }
    }

    fn flush(&mut self) {}

    fn delivered(&mut self, _: PathId) -> u64 {
        u64::from(self.delivers)
    }
}

const MESSAGE: Copied<'_> = Copied { imm: None, bytes: [b"eight by", b"tes"], signalled: true };

/// Two nodes, of which the first has nothing left to do.
fn connected(setup: &Setup) -> Two {
    let mut two = setup.connected(|_, _| {});
    two.fabric.turn(two.a.node);
    two
}

fn copies(two: &mut Two, room: bool) -> bool {
    let Two { a, fabric, .. } = two;
    let mut device = Nowhere { room, delivers: false };
    fabric.nic(a.node).send_copied(&mut a.send, &MESSAGE, &mut device)
}

/// The second node answers a packet of the first, having completed so many messages.
fn says(two: &mut Two, psn: Psn, syndrome: Syndrome, completed: u32) {
    let path = two.fabric.path(two.a.node, two.b.node);
    let aeth = Aeth { syndrome, msn: Msn::new(completed) };
    let bth = Bth::new(Opcode::RcAcknowledge, two.a.qpn, psn);
    let headers = Headers { bth, extensions: Extensions::Aeth(aeth) };
    let nic = two.fabric.nic(two.a.node);
    nic.packet(Flow::Link(path.id()), &Packet { headers, payload: &[][..] });
}

#[test]
fn what_the_device_has_no_room_for_is_not_sent_and_takes_no_room_of_others() {
    let mut two = connected(&Setup { capacity: 8, ..lossless() });
    two.b.receives(8, 8);
    (0..100).for_each(|_| assert!(!copies(&mut two, false)));
    (0..8).for_each(|id| two.a.post(short(id)));
    let (at_a, _) = two.run(8, 8);
    assert!(at_a.iter().all(|completion| completion.outcome == Ok(Done::Sent)));
}

#[test]
fn nothing_is_copied_where_something_may_be_lost() {
    let mut two = connected(&Setup::default());
    assert!(!copies(&mut two, true));
    let mut two = connected(&Setup { transport: Transport::Unreliable, ..lossless() });
    assert!(!copies(&mut two, true));
}

/// It is behind what its program had posted, and rung for or not.
#[test]
fn what_waits_is_not_overtaken() {
    let mut two = connected(&lossless());
    two.b.receives(1, 8);
    two.a.send.post(short(0)).unwrap();
    assert!(!copies(&mut two, true));
    two.a.send.ring();
    two.run(1, 1);
    assert!(copies(&mut two, true));
}

/// What is copied leaves at once: so it may only when there is room on its way, and at the peer.
#[test]
fn what_may_not_leave_yet_is_not_copied() {
    let mut two = lossless().connected(|_, sending| sending.window = 3);
    two.fabric.turn(two.a.node);
    let copied = (0..8).take_while(|_| copies(&mut two, true)).count();
    assert_eq!(copied, 3, "as many packets as may be under way");

    let first = Psn::new(7);
    let mut two = lossless().connected(|_, sending| sending.first = first);
    two.b.receives(1, 8);
    two.fabric.turn(two.a.node);
    assert!(copies(&mut two, true));
    says(&mut two, first, Syndrome::ack_with(Credits::at_most(2)), 1);
    let copied = (0..8).take_while(|_| copies(&mut two, true)).count();
    assert_eq!(copied, 2, "as many messages as the peer has receives for");
}

/// A queue that is nearly full looks for what was delivered: nobody else need do so.
#[test]
fn what_was_delivered_makes_room_for_more() {
    let mut two = connected(&Setup { depth: 8, ..lossless() });
    let unsignalled = Copied { signalled: false, ..MESSAGE };
    let mut copy = |delivers| {
        let mut device = Nowhere { room: true, delivers };
        two.fabric.nic(two.a.node).send_copied(&mut two.a.send, &unsignalled, &mut device)
    };
    assert!((0..100).all(|_| copy(true)));
    let more = (0..100).take_while(|_| copy(false)).count();
    assert!(more <= 8, "{more} in a queue of eight of which nothing was delivered");
}

#[test]
fn nothing_is_copied_when_the_connection_is_over() {
    let first = Psn::new(7);
    let mut two = lossless().connected(|_, sending| sending.first = first);
    two.fabric.turn(two.a.node);
    assert!(copies(&mut two, true));
    says(&mut two, first, Syndrome::nak(Nak::RemoteOperation), 0);
    let (at_a, _) = two.run(1, 0);
    assert!(at_a[0].outcome.is_err() && !copies(&mut two, true));
}

/// A peer that says it lacks what was delivered makes no sense; but what is not there can't be
/// sent.
#[test]
fn a_peer_that_asks_for_it_again_is_sent_nothing_else_in_its_place() {
    let first = Psn::new(7);
    let mut two = lossless().connected(|_, sending| sending.first = first);
    two.fabric.turn(two.a.node);
    assert!(copies(&mut two, true));
    two.a.send.post(short(1)).unwrap();
    says(&mut two, first, Syndrome::nak(Nak::SequenceError), 0);
    let (at_a, _) = two.run(2, 0);
    let (broke, flushed) = (Failure::Broke(Cause::NotKept), Failure::Flushed(Cause::NotKept));
    assert_eq!(outcomes(&at_a), [(0, Err(broke)), (1, Err(flushed))]);
}
