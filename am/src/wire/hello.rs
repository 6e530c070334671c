//! The greeting of endpoints that connect: private data of the connection manager's messages.

use doorbell_verbs::{RemoteAddr, RemoteMemory, Rkey};

use crate::wire::{MOST_CREDITS, Size, Tag};

/// The greeting of an endpoint that connects or accepts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hello {
    /// The size class of messages that the connection is for.
    pub size: Size,
    /// The tag that the endpoint shows, if any.
    pub tag: Option<Tag>,
    /// The memory in which the other side may place payloads.
    pub segment: RemoteMemory,
    /// The digest of the handlers whose places the program has chosen.
    pub handlers: u64,
    pub nature: Nature,
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
    const MAGIC: [u8; 3] = *b"AM\x04";
    const UNIQUE: u8 = 1;
    const METADATA: u8 = 2;
    /// The flag of a greeting that shows a tag.
    const TAGGED: u8 = 16;
    /// The lowest of the two bits for the size class.
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

    /// Decodes private data, or returns `None` if no endpoint of this version wrote it.
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
