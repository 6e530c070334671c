//! Statements, and their proofs by a key.

use hmac::{Hmac, Mac};
use sha2::{Digest, Sha256};

/// A random number of 128 bits, which nobody has drawn before and nobody can guess.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct Nonce(pub [u8; Self::LEN]);

impl Nonce {
    /// The number of bytes of a nonce.
    pub const LEN: usize = 16;

    /// Draws a nonce from the random numbers of the system.
    pub fn draw() -> Self {
        Self(drawn())
    }
}

/// Draws random bytes from the system.
///
/// # Panics
/// If the system has no random numbers, which no Linux has that has started.
pub(super) fn drawn<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).expect("Linux has random numbers once it has started");
    bytes
}

/// A proof of a statement: the first half of an HMAC.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Proof(pub [u8; Self::LEN]);

impl Proof {
    /// The number of bytes of a proof.
    pub const LEN: usize = 16;
}

/// The statement that a proof is bound to, as a hash of all that it says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Statement([u8; 32]);

impl Statement {
    /// Makes a statement of parts. The label says what kind of statement it is: two kinds must not
    /// have the same label.
    pub fn of(label: &str, parts: &[&[u8]]) -> Self {
        let mut hash = Sha256::new();
        for part in [label.as_bytes()].iter().chain(parts) {
            // The lengths, so that no two lists of parts are the same bytes.
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        }
        Self(hash.finalize().into())
    }

    /// Returns half of the hash, as a part of other statements.
    pub(crate) fn half(&self) -> [u8; 16] {
        *self.0.first_chunk().expect("a hash has 32 bytes")
    }

    fn mac(&self, key: u64) -> Hmac<Sha256> {
        let mac = Hmac::<Sha256>::new_from_slice(&key.to_be_bytes());
        mac.expect("a key of any length will do").chain_update(self.0)
    }

    /// Proves the statement by a key.
    pub fn proven_by(&self, key: u64) -> Proof {
        Proof(half(self.mac(key)))
    }

    /// Hides 20 bytes, or shows hidden ones, from whoever does not know the key. A statement hides
    /// bytes once: hidden by the same key a second time, bytes show what differs from the first.
    pub fn hide(&self, key: u64, bytes: [u8; 20]) -> [u8; 20] {
        // The proof of the statement is the MAC of other bytes.
        let pad: [u8; 32] = self.mac(key).chain_update(b"hides").finalize().into_bytes().into();
        let mut hidden = bytes;
        hidden.iter_mut().zip(pad).for_each(|(byte, pad)| *byte ^= pad);
        hidden
    }

    /// Returns whether somebody has made the proof who knows the key. How long that takes does not
    /// depend on where the proof is wrong.
    pub fn is_proven(&self, proof: Proof, key: u64) -> bool {
        self.mac(key).verify_truncated_left(&proof.0).is_ok()
    }
}

/// Returns half of a MAC.
pub(super) fn half(mac: Hmac<Sha256>) -> [u8; 16] {
    let bytes: [u8; 32] = mac.finalize().into_bytes().into();
    *bytes.first_chunk().expect("a MAC has 32 bytes")
}

/// A peer's claim that it knows a tag: a statement, and its proof by whatever tag the peer has
/// shown. An endpoint that demands a tag finds out whether the peer has shown that one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Claim {
    pub statement: Statement,
    pub proof: Proof,
}

impl Claim {
    /// Returns whether the tag of this number was shown.
    pub fn is_of(&self, tag: u64) -> bool {
        self.statement.is_proven(self.proof, tag)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proof_holds_for_one_key_and_one_statement() {
        let statement = Statement::of("knows", &[b"one", b"two"]);
        let proof = statement.proven_by(7);
        assert!(statement.is_proven(proof, 7) && !statement.is_proven(proof, 8));
        for other in [
            Statement::of("knew", &[b"one", b"two"]),
            Statement::of("knows", &[b"onet", b"wo"]),
            Statement::of("knows", &[b"one", b"two", b""]),
        ] {
            assert!(!other.is_proven(proof, 7), "{other:?}");
        }
        for bit in 0..8 * Proof::LEN {
            let mut wrong = proof;
            wrong.0[bit / 8] ^= 1 << (bit % 8);
            assert!(!statement.is_proven(wrong, 7), "bit {bit}");
        }
        assert_ne!(Nonce::draw(), Nonce::draw());
    }
}
