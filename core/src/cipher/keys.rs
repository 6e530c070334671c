//! The keys of a connection: what is sent is sealed with one, and what is received is opened with
//! the other.

use std::fmt;
use std::sync::Arc;

use super::algorithm::{Cipher, TAG_LEN};
use super::numbers::Number;
use super::receiving::{Receiving, Unopened};
use super::sending::Sending;
use crate::wire::Bth;

/// The bytes that encryption adds to a packet, but for up to three of padding: a number, a tag, and
/// the opcode.
pub(crate) const OVERHEAD: usize = Number::LEN + TAG_LEN + 1;

/// The most bytes that encryption adds to a packet.
pub const MOST_ADDED: usize = OVERHEAD + 3;

/// The place of the first byte that is encrypted.
pub(crate) const ENCRYPTED_FROM: usize = Bth::LEN + Number::LEN;

/// The place in a BTH of the byte that switches may change, and that is not authenticated: it has the
/// congestion bits, and reserved ones.
const CHANGEABLE: usize = 4;

/// The keys of a connection.
pub struct Keys {
    sending: Sending,
    receiving: Receiving,
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keys").finish_non_exhaustive()
    }
}

impl Keys {
    /// Makes the keys of a connection, given the first key of either direction. The keys must be this
    /// connection's alone.
    pub fn new(sending: Arc<dyn Cipher>, receiving: Arc<dyn Cipher>) -> Self {
        Self { sending: Sending::new(sending), receiving: Receiving::new(receiving) }
    }

    /// Seals a packet in place: `packet` has room for the BTH and the number, then what is to be
    /// encrypted, then room for the tag. Padding and ICRC are not among it.
    pub(crate) fn seal(&self, bth: &Bth, packet: &mut [u8]) {
        let Some((head, rest)) = packet.split_first_chunk_mut::<ENCRYPTED_FROM>() else { return };
        let Some((bytes, tag)) = rest.split_last_chunk_mut::<TAG_LEN>() else { return };
        let number = self.sending.number();
        let bth = bth.to_bytes();
        let (in_clear, counted) = head.split_at_mut(Bth::LEN);
        in_clear.copy_from_slice(&bth);
        counted.copy_from_slice(&number.to_bytes());
        *tag = self.sending.seal(number, &authenticated(bth), bytes);
    }

    /// Opens a packet, of which `behind` is what follows its BTH without padding, into `opened`.
    /// Returns the opcode that was encrypted, and the extension headers and the payload behind it.
    ///
    /// # Errors
    /// When the packet is not what the peer sent, or has come before.
    pub(crate) fn open<'o>(
        &mut self,
        bth: &Bth,
        behind: &[u8],
        opened: &'o mut [u8],
    ) -> Result<(u8, &'o [u8]), Unopened> {
        // What is shorter or longer than any packet was not sent by the peer.
        let wrong = Unopened::NotAuthentic;
        let (number, sealed) = behind.split_first_chunk().ok_or(wrong)?;
        let len = sealed.len().checked_sub(TAG_LEN).ok_or(wrong)?;
        let opened = opened.get_mut(..len).ok_or(wrong)?;
        let clear = authenticated(bth.to_bytes());
        self.receiving.open(Number::from_bytes(*number), &clear, sealed, opened)?;
        let (opcode, rest) = opened.split_first().ok_or(wrong)?;
        Ok((*opcode, rest))
    }

    /// Goes on to the next key for what is sent. The peer follows as soon as it receives something
    /// that is sealed with it.
    pub fn renew(&mut self) {
        self.sending.renew();
    }

    /// Goes on to the next key if it is due.
    #[inline]
    pub(crate) fn renew_if_due(&mut self) {
        if self.sending.is_due() {
            self.renew();
        }
    }
}

/// Returns what of a BTH is authenticated.
fn authenticated(mut bth: [u8; Bth::LEN]) -> [u8; Bth::LEN] {
    bth[CHANGEABLE] = 0xFF;
    bth
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{Opcode, Psn, Qpn};

    /// A cipher that keeps no secret, with a tag that depends on every bit.
    #[derive(Debug)]
    struct Sum(u64);

    impl Sum {
        fn tag(&self, number: u64, clear: &[u8], bytes: &[u8]) -> [u8; TAG_LEN] {
            let mut sum = self.0 ^ number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
            for &byte in clear.iter().chain(&[clear.len() as u8]).chain(bytes) {
                sum = (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3).rotate_left(23);
            }
            u128::from(sum).to_be_bytes()
        }
    }

    impl Cipher for Sum {
        fn seal(&self, number: u64, clear: &[u8], bytes: &mut [u8]) -> [u8; TAG_LEN] {
            bytes.iter_mut().for_each(|byte| *byte ^= 0x5A);
            self.tag(number, clear, bytes)
        }

        fn open(&self, number: u64, clear: &[u8], sealed: &[u8], bytes: &mut [u8]) -> bool {
            let (sealed, tag) = sealed.split_at(bytes.len());
            bytes.iter_mut().zip(sealed).for_each(|(byte, sealed)| *byte = sealed ^ 0x5A);
            tag == self.tag(number, clear, sealed)
        }

        fn next(&self) -> Arc<dyn Cipher> {
            Arc::new(Self(self.0 + 1))
        }

        fn most_packets(&self) -> u64 {
            3
        }
    }

    fn keys() -> [Keys; 2] {
        let cipher = |secret| -> Arc<dyn Cipher> { Arc::new(Sum(secret)) };
        [Keys::new(cipher(7), cipher(9)), Keys::new(cipher(9), cipher(7))]
    }

    const SAID: &[u8] = b"\x04what is said";

    fn sealed(keys: &Keys) -> Vec<u8> {
        let bth = Bth::new(Opcode::Encrypted, Qpn::new(5), Psn::new(6));
        let mut packet = [&[0; ENCRYPTED_FROM][..], SAID, &[0; TAG_LEN]].concat();
        keys.seal(&bth, &mut packet);
        packet
    }

    fn open(keys: &mut Keys, packet: &[u8]) -> Result<Vec<u8>, Unopened> {
        let (bth, behind) = packet.split_first_chunk().expect("a header");
        let bth = Bth::from_bytes(bth).map_err(|_| Unopened::NotAuthentic)?;
        let mut room = [0; 64];
        let (opcode, rest) = keys.open(&bth, behind, &mut room)?;
        Ok([&[opcode], rest].concat())
    }

    #[test]
    fn whatever_bit_is_changed_the_packet_is_refused_but_for_those_of_switches() {
        let [one, _] = keys();
        let packet = sealed(&one);
        for bit in 0..8 * packet.len() {
            let (mut changed, [_, mut other]) = (packet.clone(), keys());
            changed[bit / 8] ^= 1 << (bit % 8);
            let opened = open(&mut other, &changed);
            match bit / 8 {
                CHANGEABLE => assert_eq!(opened.as_deref(), Ok(SAID)),
                _ => assert_eq!(opened, Err(Unopened::NotAuthentic), "bit {bit}"),
            }
            // What was refused does not keep the authentic packet out.
            if bit / 8 != CHANGEABLE {
                assert_eq!(open(&mut other, &packet).as_deref(), Ok(SAID), "bit {bit}");
            }
        }
        for len in Bth::LEN..packet.len() {
            let [_, mut other] = keys();
            assert_eq!(open(&mut other, &packet[..len]), Err(Unopened::NotAuthentic));
        }
    }

    #[test]
    fn a_packet_opens_once_at_the_peer_alone_and_also_late_after_the_next_key() {
        let [mut one, mut other] = keys();
        let (late, packet) = (sealed(&one), sealed(&one));
        assert_eq!(open(&mut one, &packet), Err(Unopened::NotAuthentic), "sent back");
        assert_eq!(open(&mut other, &packet).as_deref(), Ok(SAID));
        assert_eq!(open(&mut other, &packet), Err(Unopened::CameBefore));
        one.renew();
        assert_eq!(open(&mut other, &sealed(&one)).as_deref(), Ok(SAID));
        assert_eq!(open(&mut other, &late).as_deref(), Ok(SAID), "the key before");
        assert_eq!(open(&mut other, &packet), Err(Unopened::CameBefore));
        one.renew();
        one.renew();
        let two_ahead = sealed(&one);
        assert_eq!(open(&mut other, &two_ahead), Err(Unopened::NotAuthentic));
    }

    #[test]
    fn the_next_key_comes_when_it_is_due() {
        let [mut one, mut other] = keys();
        for _ in 0..20 {
            one.renew_if_due();
            assert_eq!(open(&mut other, &sealed(&one)).as_deref(), Ok(SAID));
        }
        assert_eq!(Number::from_bytes(*sealed(&one)[Bth::LEN..].first_chunk().unwrap()).key(), 6);
    }
}
