//! What buffers are made of, what they become, and what they are compared with.

use std::borrow::Borrow;
use std::hash::{Hash, Hasher};

use bytes::{Bytes, BytesMut};

use super::Buf;

/// Takes over the vector's allocation without a copy. Its spare capacity, which is zeroed, becomes
/// the buffer's.
impl From<Vec<u8>> for Buf {
    fn from(mut vec: Vec<u8>) -> Self {
        let len = vec.len();
        vec.resize(vec.capacity(), 0);
        Self { bytes: vec.into(), len }
    }
}

/// Takes over the allocation without a copy. There is no room for more.
impl From<Box<[u8]>> for Buf {
    fn from(bytes: Box<[u8]>) -> Self {
        let len = bytes.len();
        Self { bytes, len }
    }
}

/// Takes over the string's allocation without a copy, as that of a vector.
impl From<String> for Buf {
    fn from(text: String) -> Self {
        text.into_bytes().into()
    }
}

/// Takes over the allocation without a copy if no other handle to it is left, with its spare
/// capacity, and copies otherwise. Either way, the buffer's capacity is at least that of `bytes`.
impl From<BytesMut> for Buf {
    fn from(bytes: BytesMut) -> Self {
        let capacity = bytes.capacity();
        let mut vec = Vec::from(bytes);
        vec.reserve_exact(capacity - vec.len());
        vec.into()
    }
}

/// Takes over the allocation without a copy if no other handle to it is left, and copies otherwise.
impl From<Bytes> for Buf {
    fn from(bytes: Bytes) -> Self {
        Vec::from(bytes).into()
    }
}

/// A copy of the bytes, with no room for more.
impl From<&[u8]> for Buf {
    fn from(bytes: &[u8]) -> Self {
        Self { bytes: bytes.into(), len: bytes.len() }
    }
}

/// A copy of the bytes, with no room for more.
impl<const N: usize> From<&[u8; N]> for Buf {
    fn from(bytes: &[u8; N]) -> Self {
        Self::from(bytes.as_slice())
    }
}

/// A copy of the bytes, with no room for more.
impl<const N: usize> From<[u8; N]> for Buf {
    fn from(bytes: [u8; N]) -> Self {
        Self::from(bytes.as_slice())
    }
}

/// A copy of the text, with no room for more.
impl From<&str> for Buf {
    fn from(text: &str) -> Self {
        Self::from(text.as_bytes())
    }
}

/// The filled bytes, without a copy: see [`into_vec`](Buf::into_vec).
impl From<Buf> for Vec<u8> {
    fn from(buf: Buf) -> Self {
        buf.into_vec()
    }
}

/// Takes the filled bytes. If the buffer has room for more, the allocation shrinks, which may copy
/// them.
impl From<Buf> for Box<[u8]> {
    fn from(buf: Buf) -> Self {
        buf.into_vec().into()
    }
}

/// The filled bytes, without a copy: see [`into_bytes`](Buf::into_bytes).
impl From<Buf> for Bytes {
    fn from(buf: Buf) -> Self {
        buf.into_bytes()
    }
}

/// The filled bytes, without a copy.
impl From<Buf> for BytesMut {
    fn from(buf: Buf) -> Self {
        buf.into_bytes().into()
    }
}

impl AsRef<[u8]> for Buf {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl AsMut<[u8]> for Buf {
    fn as_mut(&mut self) -> &mut [u8] {
        self
    }
}

impl Borrow<[u8]> for Buf {
    fn borrow(&self) -> &[u8] {
        self
    }
}

/// Buffers are equal whose filled bytes are, whatever they have room for.
impl PartialEq for Buf {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for Buf {}

/// As its filled bytes are, so that a set of buffers is searched by a slice.
impl Hash for Buf {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (**self).hash(state);
    }
}

/// Compares the filled bytes with other owners of bytes.
macro_rules! compared {
    ($($(const $n:ident:)? $other:ty),+ $(,)?) => {$(
        impl$(<const $n: usize>)? PartialEq<$other> for Buf {
            fn eq(&self, other: &$other) -> bool {
                let other: &[u8] = other.as_ref();
                **self == *other
            }
        }

        impl$(<const $n: usize>)? PartialEq<Buf> for $other {
            fn eq(&self, other: &Buf) -> bool {
                other == self
            }
        }
    )+};
}

compared! {
    [u8], &[u8], const N: [u8; N], const N: &[u8; N], Vec<u8>, Bytes, BytesMut, str, &str, String,
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    /// A vector of three bytes with room for a hundred, and where it lies.
    fn vec() -> (Vec<u8>, *const u8) {
        let mut vec = Vec::with_capacity(100);
        vec.extend_from_slice(b"abc");
        let address = vec.as_ptr();
        (vec, address)
    }

    #[test]
    fn owned_bytes_become_a_buffer_without_a_copy() {
        let (own, address) = vec();
        let buf = Buf::from(own);
        assert_eq!((buf.as_ptr(), buf.capacity()), (address, 100));
        assert_eq!(buf, b"abc");

        let (own, address) = vec();
        let buf = Buf::from(String::from_utf8(own).unwrap());
        assert_eq!((buf.as_ptr(), buf.capacity()), (address, 100));
        assert_eq!(buf, "abc");

        let own: Box<[u8]> = Box::from(*b"abc");
        let address = own.as_ptr();
        let buf = Buf::from(own);
        assert_eq!((buf.as_ptr(), buf.capacity()), (address, 3));

        let (own, address) = vec();
        let buf = Buf::from(Bytes::from(own));
        assert_eq!((buf.as_ptr(), &*buf), (address, &b"abc"[..]));

        let mut own = BytesMut::with_capacity(100);
        own.extend_from_slice(b"abc");
        let address = own.as_ptr();
        let buf = Buf::from(own);
        assert_eq!((buf.as_ptr(), buf.capacity()), (address, 100));
        assert_eq!(buf, b"abc");
    }

    #[test]
    fn a_buffer_becomes_owned_bytes_without_a_copy() {
        let full = || Buf::from(*b"abc");
        let with_room = || Buf::from(vec().0);
        for buf in [full, with_room] as [fn() -> Buf; 2] {
            let own = buf();
            let at = own.as_ptr();
            let own = Vec::from(own);
            assert_eq!((own.as_ptr(), &*own), (at, &b"abc"[..]));

            let own = buf();
            let at = own.as_ptr();
            let own = Bytes::from(own);
            assert_eq!((own.as_ptr(), &*own), (at, &b"abc"[..]));

            let own = buf();
            let at = own.as_ptr();
            let own = BytesMut::from(own);
            assert_eq!((own.as_ptr(), &*own), (at, &b"abc"[..]));

            let own: Box<[u8]> = buf().into();
            assert_eq!(*own, *b"abc");
        }
    }

    #[test]
    fn shared_bytes_are_copied_and_stay_what_they_are() {
        let shared = Bytes::from(b"abcdef".to_vec());
        let mut buf = Buf::from(shared.slice(..3));
        buf[0] = b'A';
        assert_eq!((buf, shared), (Buf::from(b"Abc"), Bytes::from_static(b"abcdef")));

        let mut whole = BytesMut::from(&b"abcdef"[..]);
        whole.reserve(100);
        let mut rest = whole.split_off(3);
        rest.truncate(1);
        let capacity = rest.capacity();
        let buf = Buf::from(rest);
        assert_eq!(buf, b"d");
        assert!(buf.capacity() >= capacity, "{} of {capacity}", buf.capacity());
        assert_eq!(whole, b"abc"[..]);
    }

    #[test]
    fn buffers_are_compared_and_hashed_by_what_is_filled() {
        let mut buf = Buf::with_capacity(8);
        buf.extend_from_slice(b"abc").unwrap();
        assert_eq!(buf, Buf::from("abc"));
        assert_ne!(buf, Buf::from("abd"));
        assert_eq!(buf, buf.clone());
        assert_eq!(buf.clone().capacity(), 8);
        assert_eq!(buf, vec![97, 98, 99]);
        assert_eq!(Bytes::from_static(b"abc"), buf);
        let set = HashSet::from([buf]);
        assert!(set.contains(&b"abc"[..]));
        assert!(!set.contains(&b"ab"[..]));
    }
}
