//! The greeting of endpoints that connect: private data of the connection manager's messages.

use doorbell_verbs::{RemoteAddr, RemoteMemory, Rkey};

use crate::wire::{MOST_CREDITS, Size, Tag};

/// What endpoints tell each other when they meet: the private data of the connection's request and
/// of its reply.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hello {
    /// Which messages the connection is for.
    pub size: Size,
    /// The tag that is shown, if one is.
    pub tag: Option<Tag>,
    /// Memory in which others may place payloads.
    pub segment: RemoteMemory,
    /// What tells the endpoint's handlers from others, as far as its program has chosen their
    /// places.
    pub handlers: u64,
    pub nature: Nature,
}

/// What does not change of an endpoint while a peer is connected to it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Nature {
    /// Whether nobody else has that number, for it was drawn.
    pub unique: bool,
    /// Whether it takes payloads that are placed by a write with metadata.
    pub metadata: bool,
    /// The endpoint's own service, by which others know it.
    pub service: u64,
    /// How many requests the other may have under way to it.
    pub credits: u16,
    /// How many requests it will have under way to the other, as far as it is sure to be able to.
    pub limit: u16,
    /// The longest payload that it takes in a message.
    pub payload: u32,
    /// How long it waits for a reply.
    pub patience: u32,
}

impl Hello {
    const MAGIC: [u8; 3] = *b"AM\x04";
    const UNIQUE: u8 = 1;
    const METADATA: u8 = 2;
    /// A tag is shown.
    const TAGGED: u8 = 16;
    /// Behind those, of two bits.
    const SIZE: u32 = 2;
    const LEN: usize = 40 + RemoteMemory::ENCODED;

    pub fn to_bytes(self) -> [u8; Self::LEN] {
        let mut bytes = [0; Self::LEN];
        let flag = |is: bool, flag| if is { flag } else { 0 };
        let Self { nature, .. } = self;
        let flags = flag(nature.unique, Self::UNIQUE)
            | flag(nature.metadata, Self::METADATA)
            | flag(self.tag.is_some(), Self::TAGGED)
            | (self.size as u8) << Self::SIZE;
        let parts: [&[u8]; 10] = [
            &Self::MAGIC,
            &[flags],
            &nature.service.to_be_bytes(),
            &self.tag.map_or(0, |Tag(tag)| tag).to_be_bytes(),
            &nature.credits.to_be_bytes(),
            &nature.limit.to_be_bytes(),
            &nature.payload.to_be_bytes(),
            &self.handlers.to_be_bytes(),
            &nature.patience.to_be_bytes(),
            &self.segment.to_bytes(),
        ];
        let mut rest = &mut bytes[..];
        for part in parts {
            let (head, tail) = rest.split_at_mut(part.len());
            head.copy_from_slice(part);
            rest = tail;
        }
        bytes
    }

    /// What private data says, if an endpoint wrote it.
    pub fn from_bytes(mut bytes: &[u8]) -> Option<Self> {
        fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
            bytes.split_off(..N)?.first_chunk().copied()
        }
        let bytes = &mut bytes;
        if take(bytes)? != Self::MAGIC {
            return None;
        }
        let [flags] = take(bytes)?;
        let size = Size::ALL[usize::from(flags >> Self::SIZE & 3)];
        let service = u64::from_be_bytes(take(bytes)?);
        let tag = Tag(u64::from_be_bytes(take(bytes)?));
        let tag = (flags & Self::TAGGED != 0).then_some(tag);
        let nature = Nature {
            unique: flags & Self::UNIQUE != 0,
            metadata: flags & Self::METADATA != 0,
            service,
            credits: u16::from_be_bytes(take(bytes)?),
            limit: u16::from_be_bytes(take(bytes)?),
            payload: u32::from_be_bytes(take(bytes)?),
            patience: 0,
        };
        let handlers = u64::from_be_bytes(take(bytes)?);
        let nature = Nature { patience: u32::from_be_bytes(take(bytes)?), ..nature };
        let segment = RemoteMemory::from_bytes(take(bytes)?);
        let takes = nature.payload as usize >= size.least_payload();
        let sound = takes && (1..=MOST_CREDITS).contains(&nature.credits.into());
        sound.then_some(Self { size, tag, segment, handlers, nature })
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
        let hello = |tag| Hello { size: Size::Medium, tag, segment, handlers: 3, nature };
        for tag in [None, Some(Tag(0)), Some(Tag(u64::MAX))] {
            assert_eq!(Hello::from_bytes(&hello(tag).to_bytes()), Some(hello(tag)));
        }
        let mut bytes = hello(None).to_bytes().to_vec();
        assert_eq!(Hello::from_bytes(&bytes[..bytes.len() - 1]), None);
        bytes[20..22].fill(0);
        assert_eq!(Hello::from_bytes(&bytes), None, "without credits");
        bytes[0] = b'a';
        assert_eq!(Hello::from_bytes(&bytes), None);
    }
}
