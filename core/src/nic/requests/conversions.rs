//! Conversions of bytes, as programs have them, into the data and the memory of requests.

use bytes::{Bytes, BytesMut};

use crate::memory::Buf;
use crate::nic::protection::segment::Segment;
use crate::nic::requests::memory::{Data, Inline, Memory};

impl From<Buf> for Memory {
    #[inline]
    fn from(buf: Buf) -> Self {
        Self::Buf(buf)
    }
}

/// Makes a [`Buf`] of the vector, without a copy: its bytes are sent, or its whole capacity is
/// received into.
impl From<Vec<u8>> for Memory {
    fn from(vec: Vec<u8>) -> Self {
        Self::Buf(vec.into())
    }
}

/// Makes a full [`Buf`] of the bytes, without a copy.
impl From<Box<[u8]>> for Memory {
    fn from(bytes: Box<[u8]>) -> Self {
        Self::Buf(bytes.into())
    }
}

/// Makes a [`Buf`] of the bytes, without a copy if no other handle to their allocation is left:
/// they are sent, or the whole capacity is received into.
impl From<BytesMut> for Memory {
    fn from(bytes: BytesMut) -> Self {
        Self::Buf(bytes.into())
    }
}

impl From<Segment> for Memory {
    #[inline]
    fn from(segment: Segment) -> Self {
        Self::Segment(segment)
    }
}

impl From<Box<[Segment]>> for Memory {
    #[inline]
    fn from(list: Box<[Segment]>) -> Self {
        Self::List(list)
    }
}

impl<const N: usize> From<[Segment; N]> for Memory {
    fn from(list: [Segment; N]) -> Self {
        Self::List(list.into())
    }
}

impl<M: Into<Memory>> From<M> for Data {
    #[inline]
    fn from(memory: M) -> Self {
        Self::Memory(memory.into())
    }
}

impl From<Inline> for Data {
    #[inline]
    fn from(inline: Inline) -> Self {
        Self::Inline(inline)
    }
}

/// Takes the bytes over without a copy if no other handle to them is left. Shared bytes travel in
/// the request if they are few, and are copied otherwise.
impl From<Bytes> for Data {
    fn from(bytes: Bytes) -> Self {
        match bytes.is_unique() {
            true => Buf::from(bytes).into(),
            false => Self::copied(&bytes),
        }
    }
}

/// Takes the text's bytes over, without a copy.
impl From<String> for Data {
    fn from(text: String) -> Self {
        Buf::from(text).into()
    }
}

/// Puts the bytes into the request if they are few, and copies them otherwise.
impl From<&'static [u8]> for Data {
    #[inline]
    fn from(bytes: &'static [u8]) -> Self {
        Self::copied(bytes)
    }
}

/// Puts the bytes into the request if they are few, and copies them otherwise.
impl<const N: usize> From<&'static [u8; N]> for Data {
    #[inline]
    fn from(bytes: &'static [u8; N]) -> Self {
        Self::copied(bytes)
    }
}

/// Puts the text into the request if it is short, and copies it otherwise.
impl From<&'static str> for Data {
    #[inline]
    fn from(text: &'static str) -> Self {
        Self::copied(text.as_bytes())
    }
}

impl Data {
    /// Copies bytes into the request if they are few, or else into a buffer.
    #[inline]
    fn copied(bytes: &[u8]) -> Self {
        match Inline::new(bytes) {
            Some(inline) => Self::Inline(inline),
            None => Buf::from(bytes).into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nic::MOST_INLINE;

    /// The buffer that is sent: where its bytes lie, and how many there are.
    fn buffer(data: Data) -> (*const u8, usize) {
        let Data::Memory(Memory::Buf(buf)) = data else { panic!("it is {data:?}") };
        (buf.as_ptr(), buf.len())
    }

    #[test]
    fn owned_bytes_are_sent_from_where_they_lie() {
        let bytes = vec![7; 3];
        let at = bytes.as_ptr();
        assert_eq!(buffer(bytes.into()), (at, 3));
        let bytes: Box<[u8]> = Box::from([7; 3]);
        let at = bytes.as_ptr();
        assert_eq!(buffer(bytes.into()), (at, 3));
        let bytes = BytesMut::from(&[7; 3][..]);
        let at = bytes.as_ptr();
        assert_eq!(buffer(bytes.into()), (at, 3));
        let bytes = Bytes::from(vec![7; 3]);
        let at = bytes.as_ptr();
        assert_eq!(buffer(bytes.into()), (at, 3));
        let text = String::from("abc");
        let at = text.as_ptr();
        assert_eq!(buffer(text.into()), (at, 3));
    }

    #[test]
    fn bytes_of_the_program_and_shared_ones_travel_in_the_request_if_they_are_few() {
        static FEW: [u8; MOST_INLINE] = [7; MOST_INLINE];
        static MANY: [u8; MOST_INLINE + 1] = [7; MOST_INLINE + 1];
        let shared = |bytes: &[u8]| {
            let one = Bytes::copy_from_slice(bytes);
            (one.clone(), one)
        };
        let (kept, few) = shared(&FEW);
        let all: [Data; 5] =
            [(&FEW).into(), FEW[..].into(), b"abc".into(), "abc".into(), few.into()];
        for (data, bytes) in all.iter().zip([&FEW[..], &FEW, b"abc", b"abc", &kept]) {
            assert!(matches!(data, Data::Inline(_)), "{data:?}");
            assert_eq!(data.bytes(), Some(bytes));
        }
        let (kept, many) = shared(&MANY);
        for (data, bytes) in [Data::from(&MANY), many.into()].iter().zip([&MANY[..], &kept]) {
            assert!(matches!(data, Data::Memory(Memory::Buf(_))), "{data:?}");
            assert_eq!(data.bytes(), Some(bytes));
        }
    }

    #[test]
    fn a_vector_has_its_capacity_to_receive_into() {
        let room = |memory: Memory| memory.room();
        assert_eq!(room(Vec::with_capacity(100).into()), 100);
        assert_eq!(room(BytesMut::with_capacity(100).into()), 100);
        assert_eq!(room(vec![0; 100].into()), 100);
        assert_eq!(Memory::from(Vec::with_capacity(100)).filled(), 0);
    }
}
