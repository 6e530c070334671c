//! The greeting of endpoints that connect: private data of the connection manager's messages.

use doorbell_verbs::{RemoteAddr, RemoteMemory, Rkey};

use super::bytes::{laid, take};
use crate::proof::{Nonce, Proof};
use crate::wire::{MOST_CREDITS, Size};

/// The greeting of an endpoint that connects or accepts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hello {
    /// The size class of messages that the connection is for.
    pub size: Size,
    /// The digest of the handlers whose places the program has chosen.
    pub handlers: u64,
    pub nature: Nature,
    /// The number that the endpoint has drawn for the connection.
    pub nonce: Nonce,
    /// The memory in which the other side may place payloads. The side that connects tells it later,
    /// when it is asked.
    pub segment: RemoteMemory,
    /// The proof that the endpoint knows the tag that it shows, if it shows one. The side that
    /// accepts shows the tag that it demands, if it demands one.
    pub shows: Option<Shown>,
}

/// A tag that a greeting shows, by a proof.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shown {
    /// The epoch of the [challenge](crate::wire::Challenge) that the proof of the connecting side
    /// answers.
    pub epoch: bool,
    pub proof: Proof,
}

/// The properties of an endpoint that do not change while a peer is connected to it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Nature {
    /// Whether the service number was drawn, so that no other endpoint has it.
    pub unique: bool,
    /// Whether the endpoint takes payloads that are placed by a write with metadata.
    pub metadata: bool,
    /// The service number by which peers know the endpoint.
    pub service: u64,
    /// The credits that the endpoint grants.
    pub credits: u16,
    /// The requests that the endpoint is sure to be able to have under way itself.
    pub limit: u16,
    /// The longest payload that the endpoint takes in a message.
    pub payload: u32,
    /// The time that peers have to answer the endpoint's requests, in milliseconds.
    pub patience: u32,
}

impl Hello {
    const MAGIC: [u8; 3] = *b"AM\x06";
    const UNIQUE: u8 = 1;
    const METADATA: u8 = 2;
    /// The flag of a greeting that shows a tag.
    const SHOWS: u8 = 16;
    /// The flag for the epoch of the challenge that the shown tag's proof answers.
    const EPOCH: u8 = 32;
    /// The lowest of the two bits for the size class.
    const SIZE: u32 = 2;
    /// The number of bytes of a greeting without a segment. More than 76 would leave no room in a
    /// REQ for extensions of the standard.
    const SHORT: usize = 32 + Nonce::LEN + Proof::LEN;
    const LEN: usize = Self::SHORT + RemoteMemory::ENCODED;

    /// Encodes the greeting of the side that connects, which has no segment.
    pub fn asking(self) -> [u8; Self::SHORT] {
        const { assert!(Self::SHORT <= 76) };
        debug_assert_eq!(self.segment, NOWHERE, "the answer would be that there is none");
        laid(&[&self.to_bytes()])
    }

    pub fn to_bytes(self) -> [u8; Self::LEN] {
        let flag = |is: bool, flag| if is { flag } else { 0 };
        let Self { nature, shows, .. } = self;
        let flags = flag(nature.unique, Self::UNIQUE)
            | flag(nature.metadata, Self::METADATA)
            | flag(shows.is_some(), Self::SHOWS)
            | flag(shows.is_some_and(|shown| shown.epoch), Self::EPOCH)
            | self.size.code() << Self::SIZE;
        laid(&[
            &Self::MAGIC,
            &[flags],
            &nature.service.to_be_bytes(),
            &nature.credits.to_be_bytes(),
            &nature.limit.to_be_bytes(),
            &nature.payload.to_be_bytes(),
            &self.handlers.to_be_bytes(),
            &nature.patience.to_be_bytes(),
            &self.nonce.0,
            &shows.map_or(Proof::default(), |shown| shown.proof).0,
            &self.segment.to_bytes(),
        ])
    }

    /// Decodes private data, or returns `None` if no endpoint of this version wrote it.
    pub fn from_bytes(mut bytes: &[u8]) -> Option<Self> {
        let bytes = &mut bytes;
        if take(bytes)? != Self::MAGIC {
            return None;
        }
        let [flags] = take(bytes)?;
        let known = Self::UNIQUE | Self::METADATA | Self::SHOWS | Self::EPOCH | 3 << Self::SIZE;
        let size = flags >> Self::SIZE & 3;
        let size = Size::ALL.into_iter().find(|known| known.code() == size)?;
        let nature = Nature {
            unique: flags & Self::UNIQUE != 0,
            metadata: flags & Self::METADATA != 0,
            service: u64::from_be_bytes(take(bytes)?),
            credits: u16::from_be_bytes(take(bytes)?),
            limit: u16::from_be_bytes(take(bytes)?),
            payload: u32::from_be_bytes(take(bytes)?),
            patience: 0,
        };
        let handlers = u64::from_be_bytes(take(bytes)?);
        let nature = Nature { patience: u32::from_be_bytes(take(bytes)?), ..nature };
        let (nonce, proof) = (Nonce(take(bytes)?), Proof(take(bytes)?));
        // The side that connects has none, and private data may have zeros behind what was said.
        let segment = take(bytes).map_or(NOWHERE, RemoteMemory::from_bytes);
        let shown = Shown { epoch: flags & Self::EPOCH != 0, proof };
        let shows = (flags & Self::SHOWS != 0).then_some(shown);
        let takes = usize::try_from(nature.payload).is_ok_and(|most| most >= size.least_payload());
        let sound = takes && (1..=MOST_CREDITS).contains(&nature.credits.into());
        let is_known = flags & !known == 0;
        (sound && is_known).then_some(Self { size, segment, handlers, nature, nonce, shows })
    }
}

/// A zero-length remote memory, for endpoints that offer no segment.
pub(crate) const NOWHERE: RemoteMemory = RemoteMemory::new(RemoteAddr(0), Rkey(0), 0);

/// Encodes remote memory as the words of a message: address, key and length.
pub(crate) fn words_of_memory(memory: RemoteMemory) -> [u64; 3] {
    [memory.address().0, memory.rkey().0.into(), memory.len()]
}

/// Decodes the words of [`words_of_memory`]. Returns `None` for any other words.
pub(crate) fn memory_of_words(mut words: impl Iterator<Item = u64>) -> Option<RemoteMemory> {
    let (address, rkey, len) = (words.next()?, words.next()?, words.next()?);
    if words.next().is_some() {
        return None;
    }
    Some(RemoteMemory::new(RemoteAddr(address), Rkey(rkey.try_into().ok()?), len))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hello_is_read_as_it_was_written_and_nothing_else_is() {
        let nature = Nature {
            unique: true,
            metadata: true,
            service: 1,
            credits: 8,
            limit: 9,
            payload: 4096,
            patience: 4,
        };
        let segment = "10+4096@0000000b".parse().expect("memory");
        let nonce = Nonce([5; 16]);
        let hello =
            |shows| Hello { size: Size::Medium, segment, handlers: 3, nature, nonce, shows };
        let shown = |epoch, byte| Some(Shown { epoch, proof: Proof([byte; 16]) });
        for shows in [None, shown(false, 0), shown(true, 0xFF)] {
            assert_eq!(Hello::from_bytes(&hello(shows).to_bytes()), Some(hello(shows)));
        }
        let asks = Hello { segment: NOWHERE, ..hello(None) };
        for zeros in [0, 12, 28] {
            let private = [&asks.asking()[..], &vec![0; zeros]].concat();
            assert_eq!(
                Hello::from_bytes(&private),
                Some(asks),
                "with the zeros of a REQ behind it"
            );
        }
        assert_eq!(Hello::from_bytes(&asks.asking()[..63]), None);
        let mut bytes = hello(None).to_bytes().to_vec();
        bytes[12..14].fill(0);
        assert_eq!(Hello::from_bytes(&bytes), None, "without credits");
        bytes[0] = b'a';
        assert_eq!(Hello::from_bytes(&bytes), None);
    }
}
