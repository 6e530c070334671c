//! How two endpoints that connect to each other at once know that they are the same two.
//!
//! Each tells the other a secret number over the connection that it has made, which leads to the
//! endpoint of that name for sure. A number that came over a connection of the other side may be
//! anybody's, who says that the name is his. So an endpoint answers a greeting with a proof, about the
//! number in the greeting, that it knows the number which it has told to whoever has that name. Only
//! the endpoint that has told the one number and was told the other can check that; and who knows one
//! of the two learns nothing of the other.

use doorbell_am::proof::Statement;

/// A proof that an endpoint has told one number, and was told another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Proof(pub u64);

impl Proof {
    /// Makes the proof of an endpoint that has told the number `told`, and has been greeted with
    /// the number `heard`.
    pub fn new(told: u64, heard: u64) -> Self {
        let statement = Statement::of("doorbell messages: both connect", &[&heard.to_be_bytes()]);
        let first = statement.proven_by(told).0.first_chunk().copied().map(u64::from_be_bytes);
        // Zero stands for no proof.
        Self(first.unwrap_or_default().max(1))
    }
}

/// The answer to a greeting.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Answer {
    /// The endpoint has become a peer.
    Greets(super::Greeting),
    /// The endpoint is connecting to the peer itself, and that connection is the one that goes on:
    /// the peer finds it by the proof.
    Yields(Proof),
}

impl Answer {
    pub fn to_bytes(&self) -> Vec<u8> {
        match self {
            Self::Greets(greeting) => greeting.to_bytes(),
            Self::Yields(Proof(proof)) => proof.to_be_bytes().to_vec(),
        }
    }

    /// Decodes an answer, or returns `None` if it is a refusal, or of another version.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        match <[u8; 8]>::try_from(bytes) {
            Ok(proof) => Some(Self::Yields(Proof(u64::from_be_bytes(proof)))),
            Err(_) => super::Greeting::from_bytes(bytes).map(Self::Greets),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proof_depends_on_both_numbers_and_on_which_is_which() {
        let proof = Proof::new(1, 2);
        assert_eq!(proof, Proof::new(1, 2));
        for (told, heard) in [(2, 1), (1, 3), (3, 2), (0, 0)] {
            assert_ne!(Proof::new(told, heard), proof);
        }
        let answer = Answer::Yields(proof);
        assert_eq!(Answer::from_bytes(&answer.to_bytes()), Some(answer));
        assert_eq!(Answer::from_bytes(&[]), None);
    }
}
