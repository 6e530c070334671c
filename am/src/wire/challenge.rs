//! What comes before a greeting that shows a tag: a knock, and the challenge that answers it.

use super::bytes::{laid, take};
use crate::proof::{Nonce, Proof, Statement};
use crate::wire::{Hello, Size};

/// The first request of an endpoint that is to show a tag, as private data of a REQ. The request is
/// refused in any case, with a [`Challenge`] if the endpoint there may be shown a tag.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Knock {
    /// The size class of messages that the connection is for.
    pub size: Size,
    /// The service number of the endpoint that knocks.
    pub service: u64,
    /// The number that the endpoint has drawn for the connection.
    pub nonce: Nonce,
}

/// The answer to a [`Knock`], as private data of a REJ.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Challenge {
    /// The epoch in which the challenge is good, which the greeting repeats.
    pub epoch: bool,
    /// The number that the challenged side's proof has to be about.
    pub nonce: Nonce,
    /// The proof that the challenging endpoint knows the tag, if the endpoint demands one.
    pub proof: Option<Proof>,
}

impl Knock {
    /// A greeting of this version has other flags behind the first three bytes.
    const MAGIC: [u8; 4] = *b"AM\x06\x80";
    const LEN: usize = 4 + 1 + 8 + Nonce::LEN;

    pub fn to_bytes(self) -> [u8; Self::LEN] {
        let service = self.service.to_be_bytes();
        laid(&[&Self::MAGIC, &[self.size.code()], &service, &self.nonce.0])
    }

    /// Decodes private data, or returns `None` if it is no knock of this version.
    pub fn from_bytes(mut bytes: &[u8]) -> Option<Self> {
        let bytes = &mut bytes;
        if take(bytes)? != Self::MAGIC {
            return None;
        }
        let [size] = take(bytes)?;
        let size = Size::ALL.into_iter().find(|known| known.code() == size)?;
        let service = u64::from_be_bytes(take(bytes)?);
        Some(Self { size, service, nonce: Nonce(take(bytes)?) })
    }

    /// Returns what the endpoint of a service proves by a challenge with this number: that it knows
    /// the tag, when it was asked by this knock.
    pub fn challenged(&self, nonce: Nonce, by: u64) -> Statement {
        let (knock, by) = (self.to_bytes(), by.to_be_bytes());
        Statement::of("doorbell am: the challenging side", &[&knock, &nonce.0, &by])
    }
}

impl Challenge {
    const MAGIC: [u8; 4] = *b"AM\x06\x81";
    const LEN: usize = 4 + 1 + Nonce::LEN + Proof::LEN;
    const EPOCH: u8 = 1;
    const PROVES: u8 = 2;

    pub fn to_bytes(self) -> [u8; Self::LEN] {
        let flag = |is: bool, flag| if is { flag } else { 0 };
        let flags = flag(self.epoch, Self::EPOCH) | flag(self.proof.is_some(), Self::PROVES);
        let proof = self.proof.unwrap_or_default();
        laid(&[&Self::MAGIC, &[flags], &self.nonce.0, &proof.0])
    }

    /// Decodes private data, or returns `None` if it is no challenge of this version.
    pub fn from_bytes(mut bytes: &[u8]) -> Option<Self> {
        let bytes = &mut bytes;
        if take(bytes)? != Self::MAGIC {
            return None;
        }
        let [flags] = take(bytes)?;
        let (nonce, proof) = (Nonce(take(bytes)?), Proof(take(bytes)?));
        let proof = (flags & Self::PROVES != 0).then_some(proof);
        Some(Self { epoch: flags & Self::EPOCH != 0, nonce, proof })
    }

    /// Returns what an endpoint proves by a greeting that answers this challenge of the endpoint of
    /// a service: that it knows the tag that it shows. The greeting is the one that is sent, by the
    /// queue pair of this number.
    pub fn answered(&self, hello: Hello, qpn: u32, by: u64) -> Statement {
        // The proof is about the rest of the greeting.
        let shows = hello.shows.map(|shown| super::Shown { proof: Proof::default(), ..shown });
        let hello = Hello { shows, ..hello }.to_bytes();
        let (qpn, by) = (qpn.to_be_bytes(), by.to_be_bytes());
        Statement::of("doorbell am: the challenged side", &[&hello, &qpn, &self.nonce.0, &by])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knocks_and_challenges_are_read_as_they_were_written_and_nothing_else_is() {
        for size in Size::ALL {
            let knock = Knock { size, service: 5, nonce: Nonce([7; 16]) };
            assert_eq!(Knock::from_bytes(&knock.to_bytes()), Some(knock));
        }
        for (epoch, proof) in
            [(true, None), (false, Some(Proof([9; 16]))), (true, Some(Proof([0; 16])))]
        {
            let challenge = Challenge { epoch, nonce: Nonce([8; 16]), proof };
            let bytes = challenge.to_bytes();
            // A REJ has room for 148 bytes, with zeros behind.
            let private = [&bytes[..], &[0; 100]].concat();
            assert_eq!(Challenge::from_bytes(&private), Some(challenge));
            assert_eq!(Challenge::from_bytes(&bytes[..bytes.len() - 1]), None);
            assert_eq!(Knock::from_bytes(&bytes), None);
        }
    }
}
