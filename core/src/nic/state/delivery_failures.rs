//! Delivery failures: what a link is told of packets that no queue pair took.
//!
//! A lossless device says that a packet was delivered, and its sender takes the request for done. A
//! queue pair refuses what it does not accept. But a packet may come for a queue pair that does not
//! exist, or is not connected, or for a connection that it no longer has; and then nobody would
//! refuse it. So the NIC tells the link: a delivery failure notice names packets by their sequence
//! numbers, and the queue pair that they were for. The NIC at the other end breaks the queue pair
//! that has one of them under way.
//!
//! A notice that waits is owed like an acknowledgement. So it is sent before the device reports the
//! progress that it contradicts. On the wire it is an acknowledgement to queue pair 0, which no
//! connection has.

use std::collections::VecDeque;

use crate::encap::PathId;
use crate::wire::{
    Aeth, AtomicValue, Bth, Extensions, Headers, Msn, Nak, Opcode, Psn, Qpn, Syndrome,
};

/// An entry of the list of places that owe something, which stands for the delivery failure notices
/// and is no place.
pub(crate) const DELIVERY_FAILURES: u32 = u32::MAX;

/// How many runs of packets are noted at most, of all links together.
const MOST_RUNS: usize = 256;

/// The queue pair number that notices are sent to.
const NOBODY: Qpn = Qpn::new(0);

/// Packets of one link that were delivered and that no queue pair took.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FailedDelivery {
    /// The packets for one queue pair from `first` to `last`, which are less than half of all
    /// sequence numbers apart.
    Run { number: Qpn, first: Psn, last: Psn },
    /// More packets than could be noted: whatever is under way may be among them.
    Anything,
}

/// The notices that links are yet to be sent.
///
/// There are never more than [`MOST_RUNS`], and one for each link. A sender's packets follow each
/// other, so each queue pair that sends in vain takes one run until the next turn. If there are
/// more, the runs of a link that brings another become one notice of anything: that breaks some
/// connections which did nothing wrong, but nothing passes for done that was not taken. The device
/// has the links, and keeps more than this for each.
#[derive(Default)]
pub(crate) struct DeliveryFailures {
    pub waiting: VecDeque<(PathId, FailedDelivery)>,
}

impl DeliveryFailures {
    /// Whether a link is to be sent a notice.
    pub fn has_for(&self, link: PathId) -> bool {
        self.waiting.iter().any(|(other, _)| *other == link)
    }

    /// Notes that a packet was not taken.
    pub fn add(&mut self, link: PathId, number: Qpn, psn: Psn) {
        let of_link = self.waiting.iter_mut().filter(|(other, _)| *other == link);
        for (_, failed) in of_link {
            if failed.takes_in(number, psn) {
                return;
            }
        }
        let mut failed = FailedDelivery::Run { number, first: psn, last: psn };
        if self.waiting.len() >= MOST_RUNS {
            self.waiting.retain(|(other, _)| *other != link);
            failed = FailedDelivery::Anything;
        }
        self.waiting.push_back((link, failed));
    }
}

impl FailedDelivery {
    /// Whether a packet is among these, or continues their run and was added.
    fn takes_in(&mut self, number: Qpn, psn: Psn) -> bool {
        let Self::Run { number: own, first, last } = self else { return true };
        let place = psn.distance_from(*first);
        let (runs, end) = (*own == number && place >= 0, last.distance_from(*first));
        if runs && place == end + 1 {
            *last = psn;
        }
        runs && place <= end + 1
    }

    /// The headers of the notice.
    pub fn headers(self) -> Headers {
        let aeth = Aeth { syndrome: Syndrome::nak(Nak::RemoteOperation), msn: Msn::new(0) };
        match self {
            Self::Run { number, first, last } => {
                let psn = Psn::new(number.get());
                let run = u64::from(first.get()) << 32 | u64::from(last.get());
                Headers {
                    bth: Bth::new(Opcode::RcAtomicAcknowledge, NOBODY, psn),
                    extensions: Extensions::AethAtomicAck(aeth, AtomicValue(run)),
                }
            }
            Self::Anything => Headers {
                bth: Bth::new(Opcode::RcAcknowledge, NOBODY, Psn::new(0)),
                extensions: Extensions::Aeth(aeth),
            },
        }
    }

    /// Returns what a packet to queue pair 0 says, if it is a notice.
    pub fn read(headers: &Headers) -> Option<Self> {
        let Headers { bth, extensions } = headers;
        let (aeth, failed) = match (bth.opcode(), *extensions) {
            (Opcode::RcAcknowledge, Extensions::Aeth(aeth)) => (aeth, Self::Anything),
            (Opcode::RcAtomicAcknowledge, Extensions::AethAtomicAck(aeth, AtomicValue(run))) => {
                let (first, last) = (Psn::new((run >> 32) as u32), Psn::new(run as u32));
                let number = Qpn::new(bth.psn().get());
                if last.distance_from(first) < 0 {
                    return None;
                }
                (aeth, Self::Run { number, first, last })
            }
            _ => return None,
        };
        let refuses = aeth.syndrome == Syndrome::nak(Nak::RemoteOperation);
        (refuses && bth.destination() == NOBODY).then_some(failed)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// At most 256 failures wait. Those of a link that brings more become one, which stands for all
    /// of them.
    #[test]
    fn a_link_that_sends_in_vain_without_end_pushes_out_no_notice_but_its_own() {
        let (flooder, honest) = (PathId(1), PathId(2));
        let mut failures = DeliveryFailures::default();
        failures.add(honest, Qpn::new(5), Psn::new(7));
        for number in 0..10_000 {
            failures.add(flooder, Qpn::new(number % 3000), Psn::new(2 * number));
            assert!(failures.waiting.len() <= MOST_RUNS, "{}", failures.waiting.len());
        }
        let of = |link| failures.waiting.iter().filter(move |(other, _)| *other == link);
        let run =
            FailedDelivery::Run { number: Qpn::new(5), first: Psn::new(7), last: Psn::new(7) };
        assert!(of(honest).eq(&[(honest, run)]));
        assert!(of(flooder).eq(&[(flooder, FailedDelivery::Anything)]));
    }
}
