//! Management datagrams at queue pair 1: those that come for a connection manager, and those that
//! a connection manager sends.

use doorbell_core::encap::{Path, PathId};
use doorbell_core::nic::{Flow, Inbox, Way, receive_frame};
use doorbell_core::wire::{Extensions, Packet, cm::Mad};

use super::super::input::Input;
use super::packets;
use super::paths::{PAIRS, path_from, path_to};
use super::world::World;

/// The most datagrams that wait in each direction.
const MOST: usize = 256;

/// Draws how many datagrams there are: mostly three at most, now and then many.
fn many(input: &mut Input<'_>) -> u8 {
    match input.u8() {
        few @ 0..224 => few & 3,
        many => many,
    }
}

impl World {
    /// Gives the NIC several management datagrams, at times more than may wait.
    pub(super) fn receive_managing(&mut self, index: usize, input: &mut Input<'_>) {
        let by_link = input.u8() & 1 == 0;
        let (headers, payload) = packets::managing(input);
        let link = PathId(index as u32);
        for _ in 0..=many(input) {
            let before = *self.nic.counters();
            match by_link {
                true => {
                    let packet = Packet { headers, payload: &payload[..] };
                    self.nic.packet(Flow::Link(link), &packet);
                }
                false => {
                    let frame = packets::frame(&path_from(index), headers, &payload);
                    receive_frame(&mut self.nic, &mut self.opener, &frame, None);
                }
            }
            let after = self.nic.counters();
            let taken = after.management - before.management;
            let dropped = after.management_dropped - before.management_dropped;
            assert_eq!(taken + dropped, 1, "it is counted once");
            if taken == 1 {
                let Extensions::Deth(deth) = headers.extensions else { panic!("{headers:?}") };
                assert_eq!(payload.len(), Mad::LEN);
                let link = by_link.then_some(link);
                self.managers.arrived.push_back((deth.source, link, payload[0]));
            }
            assert!(self.managers.arrived.len() <= MOST, "more wait than may");
        }
    }

    /// Takes datagrams that wait, answers each, and sends some more.
    pub(super) fn manage(&mut self, index: usize, input: &mut Input<'_>) {
        for _ in 0..many(input) {
            let Some(came) = self.nic.management() else {
                assert!(self.managers.arrived.is_empty(), "a datagram was lost");
                break;
            };
            let link = match came.way {
                Way::Link(link) => Some(link),
                Way::Network(_) => None,
            };
            let expected = self.managers.arrived.pop_front();
            assert_eq!(expected, Some((came.source, link, came.bytes[0])));
            assert!(came.bytes.iter().all(|&byte| byte == came.bytes[0]));
            let path = came.way.back().path(PathId(PAIRS as u32));
            self.send_managing(path, came.bytes[0]);
        }
        let fill = input.u8();
        for _ in 0..many(input) {
            self.send_managing(path_to(index), fill);
        }
    }

    fn send_managing(&mut self, path: Path, fill: u8) {
        let room = self.managers.leaving.len() < MOST;
        assert_eq!(self.nic.manage(path, [fill; Mad::LEN]).is_ok(), room);
        if room {
            self.managers.leaving.push_back(fill);
        }
    }

    /// Asserts that the datagrams that have left were sent, in their order.
    pub(super) fn check_managing(&mut self) {
        for fill in self.port.pushed.managing.drain(..) {
            assert_eq!(Some(fill), self.managers.leaving.pop_front());
        }
    }

    /// Asserts that all datagrams have left, and that all that came were handed over.
    pub(super) fn close_managing(&mut self) {
        assert!(self.managers.leaving.is_empty(), "all has left");
        while self.nic.management().is_some() {
            self.managers.arrived.pop_front();
        }
        assert!(self.managers.arrived.is_empty(), "all that came was told");
    }
}
