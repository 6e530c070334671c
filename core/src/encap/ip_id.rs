//! Recovery of IPv4 identifications, for receivers that do not see them.
//!
//! A UDP socket passes on a datagram's payload and sender. The IPv4 identification, which the ICRC
//! covers, stays with the kernel. So the receiver predicts the identification: senders count their
//! frames up, or send zero. If the prediction is wrong, the identification with which the ICRC
//! holds can be computed, since a CRC is linear. A packet for which such an identification exists is
//! accepted.
//!
//! # How much the ICRC still proves
//! A packet whose identification was predicted has passed the whole ICRC, as one in 2³² damaged
//! packets does. A packet whose identification was computed has passed half of the ICRC: for one in
//! 2¹⁶ damaged packets, some identification explains the damage. In addition, there is the UDP
//! checksum if the sender computes one, as this program does and the kernel's own RoCE over IPv4
//! does not, and the frame check sequence of each link on the way. Every packet that is accepted
//! here must still name a queue pair and have a sequence number that the NIC expects.
//!
//! # Why no identification is refused
//! Anybody can send packets with a correct ICRC in another host's name. If identifications far from
//! the last one were refused, such packets could move the last one away, and the packets of the host
//! itself would be refused: a stranger who knows nothing about a connection could end it. So the
//! last identification decides only which one is tried first. A stranger's packets, or a sender
//! whose counter jumps, cost the time to compute one identification, and have no other effect.

use crate::wire::IpId;

/// The prediction of one sender's next identification, for a receiver that does not see
/// identifications.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct IpIdRecovery {
    /// The identification of the last frame's first packet.
    last: u16,
    /// The expected increase from one frame's identification to the next: one for a sender that
    /// counts its frames, or zero.
    step: u16,
}

impl IpIdRecovery {
    /// Returns the identification that the next frame is likely to have.
    #[inline]
    pub(super) fn expected(&self) -> IpId {
        IpId(self.last.wrapping_add(self.step))
    }

    /// Notes that a frame had the expected identification.
    #[inline]
    pub(super) fn confirm(&mut self, IpId(first): IpId) {
        self.last = first;
    }

    /// Notes that a frame had another identification than the expected one.
    pub(super) fn correct(&mut self, IpId(first): IpId) {
        if let step @ 0..=1 = first.wrapping_sub(self.last) {
            self.step = step;
        }
        self.last = first;
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
        ids: IpIdRecovery,
    }

    impl Receiver {
        fn new() -> Self {
            Self { opener: Opener::default(), ids: IpIdRecovery::default() }
        }

        /// Returns how many packets of a frame were accepted, whose identification is `first`. The byte
        /// `damaged` behind the outer headers differs from the byte that was sent.
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
        // A run that was cut up on its way, and the next run.
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
        assert_eq!(receiver.hears(503, 10, Some(13)), 9);
        assert_eq!(receiver.hears(60_000, 10, Some(13)), 9, "also where the sender begins anew");
        assert_eq!(receiver.hears(60_001, 10, None), 10);
    }

    /// A regression test: forged packets in a sender's name, with identifications counted up far
    /// away, once caused the sender's own packets to be refused, since the prediction moved before
    /// anything else was checked.
    #[test]
    fn a_sender_is_heard_whatever_identifications_others_send_in_its_name() {
        let mut receiver = Receiver::new();
        let mut forged = 0u16;
        for honest in 100..400 {
            for _ in 0..3 {
                forged = forged.wrapping_add(16_000);
                receiver.hears(forged, 1, None);
                receiver.hears(forged.wrapping_neg(), 2, Some(40));
            }
            assert_eq!(receiver.hears(honest, 2, None), 2, "{honest}");
        }
    }

    /// Of all differences between two ICRCs, one in 65536 is that between two identifications.
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
        let (mut opener, mut ids) = (Opener::default(), IpIdRecovery::default());
        let nothing = opener.datagram(&outer(), &mut ids, &[], None);
        assert!(matches!(nothing, Err(Malformed::Truncated { .. })));
        for len in 1..40 {
            let mut arrival =
                opener.datagram(&outer(), &mut ids, &[0xFF; 40][..len], None).expect("bytes");
            assert!(arrival.next().is_some_and(|packet| packet.is_err()), "{len} bytes");
        }
    }
}
