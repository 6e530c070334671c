//! Identifications that a receiver is not shown.
//!
//! A UDP socket passes on what a datagram carries and who sent it, and the IPv4 identification,
//! which the ICRC covers, stays with the kernel. It is predicted: senders count, or don't. Where
//! the prediction is wrong, the one identification that would make the ICRC right can be computed,
//! CRC being linear, and then what was 32 bits of proof is 16. So a computed identification is
//! believed only if it lies near the sender's last: in front by no more than a quarter of all, which
//! is how far a sender goes whose counter others use as well, and which moves on with time; or
//! behind by no more than a run is long, which is where one begins after the one before was cut up
//! on its way; or is zero, which is that of whoever does not count. Of damaged packets, one in 2¹⁸
//! passes, and the UDP checksum stands in addition.
//!
//! An identification far away is believed when a second one lies near it: the sender has begun
//! anew, and pays a packet for it. Of a sender that was never heard, or has said that it begins
//! anew, the first is believed.

use crate::wire::IpId;

/// How far ahead an identification may be of the one before.
const AHEAD: u16 = 1 << 14;
/// How far it may lie behind: the packets of a run.
const BEHIND: u16 = 128;

/// What is known of one sender's identifications by a receiver that is not shown them.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct HiddenIds {
    /// That of the latest frame's first packet, as far as is known.
    first: u16,
    /// How much more the next frame's is: one from a sender that counts its frames, or nothing.
    step: u16,
    belief: Belief,
}

#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
enum Belief {
    /// Any would be believed.
    #[default]
    Anything,
    /// What lies near the last.
    Near,
    /// And what lies near this, which did not.
    NearOr(u16),
}

impl HiddenIds {
    /// The sender begins anew: what comes next from it is believed.
    pub fn anew(&mut self) {
        self.belief = Belief::Anything;
    }

    /// Expects the next frame, and says by which identification.
    #[inline]
    pub(super) fn expect(&mut self) -> IpId {
        self.first = self.first.wrapping_add(self.step);
        IpId(self.first)
    }

    /// What was expected held.
    #[inline]
    pub(super) fn confirmed(&mut self) {
        self.belief = Belief::Near;
    }

    /// Whether it is believed that the frame's first packet had this identification instead.
    pub(super) fn believes(&mut self, IpId(first): IpId) -> bool {
        let near = |other: u16| {
            let ahead = first.wrapping_sub(other);
            first == 0 || ahead <= AHEAD || ahead >= BEHIND.wrapping_neg()
        };
        let before = self.first.wrapping_sub(self.step);
        let believed = match self.belief {
            Belief::Anything => true,
            Belief::Near => near(before),
            Belief::NearOr(other) => near(before) || near(other),
        };
        if believed {
            if let step @ 0..=1 = first.wrapping_sub(before) {
                self.step = step;
            }
            (self.first, self.belief) = (first, Belief::Near);
        } else {
            self.belief = Belief::NearOr(first);
        }
        believed
    }
}

#[cfg(test)]
mod tests {

    use super::*;
    use crate::encap::{Opener, Outer, Path, PathId, Run};
    use crate::wire::{Bth, Extensions, Headers, Mac, Malformed, Opcode, Psn, Qpn};

    fn outer() -> Outer {
        let at = |host, port| ([10, 0, 0, host], port).into();
        let nobody = Mac([0; 6]);
        Outer::v2((nobody, nobody), at(1, 7001), at(2, 7002)).expect("IPv4 both")
    }

    struct Receiver {
        opener: Opener,
        ids: HiddenIds,
    }

    impl Receiver {
        fn new() -> Self {
            Self { opener: Opener::default(), ids: HiddenIds::default() }
        }

        /// How many of a frame's packets were taken, the frame's identification being `first`.
        /// The byte `damaged` of what the outer headers stand around is not what was sent.
        fn hears(&mut self, first: u16, packets: u32, damaged: Option<usize>) -> usize {
            let path = Path::new(PathId(0), outer());
            let mut frame = vec![0; 20_000];
            let mut run = Run::begin(&path, &mut frame, IpId(first), packets);
            for psn in 0..packets {
                let bth = Bth::new(Opcode::RcSendMiddle, Qpn::new(2), Psn::new(psn));
                let headers = Headers { bth, extensions: Extensions::None };
                run.push(&path, &mut frame, headers, &[7; 256][..]).expect("room");
            }
            let sealed = run.seal(&mut frame);
            let mut datagram = frame[path.outer().len()..sealed.len].to_vec();
            if let Some(damaged) = damaged {
                datagram[damaged] ^= 4;
            }
            let segment = sealed.segmentation.map(|segmentation| segmentation.segment);
            let arrival = self.opener.datagram(&outer(), &mut self.ids, &datagram, segment);
            arrival.expect("packets").filter(Result::is_ok).count()
        }
    }

    #[test]
    fn whatever_a_sender_begins_with_is_found_out() {
        for first in [0, 1, 255, 256, 40_000, 65_535] {
            assert_eq!(Receiver::new().hears(first, 1, None), 1, "{first}");
            assert_eq!(Receiver::new().hears(first, 30, None), 30, "{first}, in a run");
        }
    }

    #[test]
    fn senders_count_frames_or_packets_or_nothing_and_frames_are_lost() {
        let mut receiver = Receiver::new();
        for first in [65_530, 65_531, 65_532, 65_534, 65_535, 0, 1, 900, 901, 17_000] {
            assert_eq!(receiver.hears(first, 5, None), 5, "{first}");
        }
        let mut receiver = Receiver::new();
        for first in [0; 10] {
            assert_eq!(receiver.hears(first, 128 / 2, None), 64);
        }
        // A run cut up on its way, and the next one.
        for first in (700..710).chain(701..711) {
            assert_eq!(receiver.hears(first, 1, None), 1, "{first}");
        }
    }

    #[test]
    fn a_damaged_packet_is_refused_and_those_around_it_are_not() {
        let mut receiver = Receiver::new();
        assert_eq!(receiver.hears(500, 1, None), 1);
        assert_eq!(receiver.hears(501, 1, Some(100)), 0);
        assert_eq!(receiver.hears(502, 1, None), 1);
        assert_eq!(receiver.hears(503, 10, Some(13)), 9, "its first packet, and then it is");
        assert_eq!(receiver.hears(60_000, 10, Some(13)), 8, "beginning anew, it costs another");
        assert_eq!(receiver.hears(60_001, 10, None), 10);
    }

    #[test]
    fn an_identification_far_away_is_believed_the_second_time_or_when_announced() {
        let mut receiver = Receiver::new();
        assert_eq!(receiver.hears(100, 1, None), 1);
        assert_eq!(receiver.hears(40_000, 1, None), 0);
        assert_eq!(receiver.hears(101, 1, None), 1, "the first line goes on");
        assert_eq!(receiver.hears(40_001, 1, None), 0, "and the doubt with it");
        assert_eq!(receiver.hears(40_002, 1, None), 1);
        receiver.ids.anew();
        assert_eq!(receiver.hears(9, 1, None), 1);
        assert_eq!(receiver.hears(10, 1, None), 1);
        assert_eq!(receiver.hears(40_000, 1, None), 0, "that was all that was announced");
        assert_eq!(receiver.hears(0, 1, None), 1, "whoever does not count has begun anew");
    }

    /// All that could be computed of a damaged packet is one identification in 65536, and that is
    /// believed only near the last.
    #[test]
    fn damage_seldom_has_an_identification_that_would_explain_it() {
        let mut receiver = Receiver::new();
        assert_eq!(receiver.hears(1, 1, None), 1);
        let taken = (0..272).map(|byte| receiver.hears(2, 1, Some(byte))).sum::<usize>();
        // The congestion bits of the BTH's fifth byte are not covered.
        assert_eq!(taken, 1);
    }

    #[test]
    fn nothing_is_no_packet() {
        let (mut opener, mut ids) = (Opener::default(), HiddenIds::default());
        let nothing = opener.datagram(&outer(), &mut ids, &[], None);
        assert!(matches!(nothing, Err(Malformed::Truncated { .. })));
        for len in 1..40 {
            let mut arrival =
                opener.datagram(&outer(), &mut ids, &[0xFF; 40][..len], None).expect("bytes");
            assert!(arrival.next().is_some_and(|packet| packet.is_err()), "{len} bytes");
        }
    }
}
