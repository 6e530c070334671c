//! Finding frames of RoCE v2, and corrupting them so that nobody but RoCE can tell.

use std::ops::Range;

use doorbell_simulation::{Luck, corrupt};

const PORT: u16 = 4791;
const ETHERNET: usize = 14;
const UDP: usize = 8;
const PROTOCOL_UDP: u8 = 17;

/// Where the byte of the base transport header is, behind the UDP header, that the ICRC leaves out:
/// routers may write to it.
const UNCHECKED: usize = 4;

/// Where in a frame of RoCE v2 things are.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Roce {
    /// The pair of IP addresses.
    addresses: Range<usize>,
    /// The UDP header and all behind it, without an Ethernet frame's padding.
    udp: Range<usize>,
}

impl Roce {
    /// Looks whether a frame is one: UDP over IPv4 or IPv6 to the port of RoCE, whole.
    pub fn find(frame: &[u8]) -> Option<Self> {
        let word = |at: usize| Some(u16::from_be_bytes(*frame.get(at..)?.first_chunk()?));
        let ip = ETHERNET;
        let (protocol, addresses, udp) = match word(12)? {
            // No fragments: neither an offset nor more to come.
            0x0800 if word(ip + 6)? & 0x3FFF == 0 => {
                let header = usize::from(frame.get(ip)? & 0xF) * 4;
                (frame.get(ip + 9)?, ip + 12..ip + 20, ip + header)
            }
            0x86DD => (frame.get(ip + 6)?, ip + 8..ip + 40, ip + 40),
            _ => return None,
        };
        let udp = udp..udp + usize::from(word(udp + 4)?);
        let is_one = *protocol == PROTOCOL_UDP && word(udp.start + 2)? == PORT;
        let fits = udp.len() > UDP + UNCHECKED && udp.end <= frame.len();
        (is_one && fits).then_some(Self { addresses, udp })
    }

    /// Flips one to three bits behind the UDP header, and has the UDP header not tell.
    pub fn corrupt(&self, frame: &mut [u8], luck: &mut Luck) {
        let behind = &mut frame[self.udp.start + UDP..self.udp.end];
        let unchecked = behind[UNCHECKED];
        // The byte that does not count is taken out while bits are flipped.
        behind.copy_within(UNCHECKED + 1.., UNCHECKED);
        let (last, counting) = behind.split_last_mut().expect("there is more than a header");
        corrupt(counting, luck);
        *last = unchecked;
        behind[UNCHECKED..].rotate_right(1);
        self.sum(frame);
    }

    /// Over IPv4 a sum may be left out, and is. Over IPv6 it is made to fit, if there is one.
    fn sum(&self, frame: &mut [u8]) {
        let at = self.udp.start + 6..self.udp.start + 8;
        let had_one = frame[at.clone()] != [0, 0];
        frame[at.clone()].fill(0);
        if had_one && self.addresses.len() == 32 {
            let sum = match self.ones_complement(frame) {
                // Nought would say that there is none.
                0 => 0xFFFF,
                sum => sum,
            };
            frame[at].copy_from_slice(&sum.to_be_bytes());
        }
    }

    /// The sum of the addresses, the protocol, the length, and all from the UDP header on.
    fn ones_complement(&self, frame: &[u8]) -> u16 {
        let (addresses, udp) = (&frame[self.addresses.clone()], &frame[self.udp.clone()]);
        let words = addresses.chunks(2).chain(udp.chunks(2)).map(|word| match *word {
            [high, low] => u64::from(u16::from_be_bytes([high, low])),
            [high, ..] => u64::from(high) << 8,
            [] => 0,
        });
        let mut sum = words.sum::<u64>() + udp.len() as u64 + u64::from(PROTOCOL_UDP);
        while sum > 0xFFFF {
            sum = (sum & 0xFFFF) + (sum >> 16);
        }
        !(sum as u16)
    }
}

#[cfg(test)]
mod tests {
    use doorbell_core::pcap::Reader;

    use super::*;

    fn frames(capture: &str) -> Vec<Vec<u8>> {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../captures/");
        let file = std::fs::read(folder.to_owned() + capture).expect("the capture is there");
        let records = Reader::new(&file).expect("a capture");
        records.map(|record| record.expect("a record").data.to_vec()).collect()
    }

    fn of_roce(capture: &str) -> Vec<(Vec<u8>, Roce)> {
        let found = frames(capture).into_iter();
        found.filter_map(|frame| Roce::find(&frame).map(|roce| (frame, roce))).collect()
    }

    #[test]
    fn frames_of_roce_are_found_among_others_however_they_are_cut() {
        for capture in ["rc_pingpong.pcap", "rc_pingpong_v6.pcap"] {
            let (all, found) = (frames(capture), of_roce(capture));
            assert!(!found.is_empty() && found.len() < all.len(), "{}", found.len());
            let (frame, roce) = &found[0];
            assert_eq!(roce.udp.end, frame.len());
            assert!((0..frame.len()).all(|len| Roce::find(&frame[..len]).is_none()));
        }
    }

    #[test]
    fn only_what_the_icrc_covers_is_corrupted_and_the_sum_does_not_tell() {
        let mut luck = Luck::new(5);
        let found = ["rc_pingpong.pcap", "rc_pingpong_v6.pcap"].map(of_roce).concat();
        for (mut frame, roce) in found.into_iter().cycle().take(1_000) {
            // As if its sender had given it a sum.
            let at = roce.udp.start + 6;
            frame[at..at + 2].fill(1);
            roce.sum(&mut frame);
            let before = frame.clone();
            roce.corrupt(&mut frame, &mut luck);
            let changed = |at: usize| (frame[at] ^ before[at]).count_ones();
            assert!((0..at).all(|at| changed(at) == 0), "the headers stay");
            let behind = roce.udp.start + UDP;
            assert!((1..=3).contains(&(behind..frame.len()).map(changed).sum::<u32>()));
            assert_eq!(changed(behind + UNCHECKED), 0);
            if roce.addresses.len() == 32 {
                assert_ne!(frame[at..at + 2], [0, 0]);
                assert_eq!(roce.ones_complement(&frame), 0, "the sum is right");
            } else {
                assert_eq!(frame[at..at + 2], [0, 0]);
            }
        }
    }
}
