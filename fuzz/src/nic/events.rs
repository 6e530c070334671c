//! The asynchronous events of the NIC, taken and checked.

use doorbell_core::nic::{Event, State};
use doorbell_core::wire::Qpn;

use super::super::input::Input;
use super::pair::Pair;
use super::paths::PAIRS;
use super::world::World;

impl World {
    /// Takes all events that the NIC has, and checks each.
    pub(super) fn hear(&mut self) {
        while let Some(event) = self.nic.event() {
            match event {
                Event::LastReceive(qpn) => {
                    assert!(self.heard.last.insert(qpn.get()), "{qpn} told of that before");
                    let of = |pair: &&Pair| pair.qpn == Some(qpn);
                    if let Some(pair) = self.pairs.iter().find(of) {
                        assert!(pair.shares, "{qpn} shares nothing");
                        assert_eq!(self.nic.state(qpn), Some(State::Error));
                    }
                }
                Event::ReceivesLow(queue) => {
                    assert_eq!(queue, self.shared.id);
                    let wanted = std::mem::take(&mut self.heard.wants_low);
                    assert!(wanted, "nobody asked for that");
                }
                _ => {}
            }
        }
    }

    /// Forgets the events of a queue pair that is reset or newly made.
    pub(super) fn unhear(&mut self, qpn: Qpn) {
        self.hear();
        self.heard.last.remove(&qpn.get());
    }

    /// Asks the NIC for an event when the shared receive queue runs low.
    pub(super) fn ask_for_low(&mut self, input: &mut Input<'_>) {
        self.hear();
        let limit = usize::from(input.u8() & 7);
        self.nic.tell_low(self.shared.id, limit).expect("it is there");
        self.heard.wants_low = limit > 0;
    }

    /// Asserts that each broken queue pair with shared receives has told of its last receive.
    pub(super) fn check_last(&mut self) {
        self.hear();
        for index in 0..PAIRS {
            let pair = &self.pairs[index];
            if let Some(qpn) = pair.qpn.filter(|_| pair.shares)
                && self.nic.state(qpn) == Some(State::Error)
            {
                assert!(self.heard.last.contains(&qpn.get()), "{qpn} did not tell of the last");
            }
        }
    }
}
