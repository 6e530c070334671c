//! Message layouts, each declared once, from which reading and writing follow.
//!
//! Every type has a constant number of bits on the wire, so a layout is a list of fields in their
//! order, with the reserved gaps between them. Bits are moved one at a time. That is slow, but
//! messages are few (a connection has five), and no field needs a shift or a mask of its own.

use crate::wire::addresses::Gid;
use crate::wire::malformed::Malformed;
use crate::wire::numbers::*;

/// A field with a fixed number of bits in a message.
pub(super) trait Field<'bytes>: Sized {
    /// The number of bits that the field has on the wire.
    const BITS: usize;

    /// Reads the next [`BITS`](Self::BITS) bits.
    fn read(from: &mut Reader<'bytes>) -> Result<Self, Malformed>;

    /// Writes the field's bits.
    fn write(&self, to: &mut Writer<'_>);
}

/// The reason why no access lies beyond the end: a layout's length is checked at compile time.
const WITHIN: &str = "a layout is as long as the datagram that it is of";

/// A reader that takes a message from its first bit to its last.
///
/// It panics beyond the end of the bytes. [`Mad`](super::Mad) gives it a whole datagram, and every
/// layout is checked to have that length when this crate is compiled.
pub(super) struct Reader<'bytes> {
    bytes: &'bytes [u8],
    at: usize,
}

impl<'bytes> Reader<'bytes> {
    pub(super) fn new(bytes: &'bytes [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    pub(super) fn take<T: Field<'bytes>>(&mut self) -> Result<T, Malformed> {
        T::read(self)
    }

    /// Reads the next `count` bits, at most 64, right-aligned.
    pub(super) fn bits(&mut self, count: usize) -> u64 {
        let bits = self.at..self.at + count;
        self.at = bits.end;
        let byte = |at: usize| *self.bytes.get(at / 8).expect(WITHIN);
        bits.fold(0, |value, at| value << 1 | u64::from(byte(at) >> (7 - at % 8) & 1))
    }

    /// Reads the next `count` bits as a number of a type that has as many.
    pub(super) fn number<T: TryFrom<u64>>(&mut self, count: usize) -> Result<T, Malformed> {
        T::try_from(self.bits(count)).map_err(|_| unreachable!("{WITHIN}"))
    }

    /// Reads the next `N` bytes.
    pub(super) fn array<const N: usize>(&mut self) -> [u8; N] {
        *self.bytes(N).as_array().expect(WITHIN)
    }

    /// Returns the next `count` bytes in place.
    pub(super) fn bytes(&mut self, count: usize) -> &'bytes [u8] {
        debug_assert!(self.at.is_multiple_of(8), "bytes begin at a byte");
        let start = self.at / 8;
        self.skip(8 * count);
        self.bytes.get(start..start + count).expect(WITHIN)
    }

    /// Skips reserved bits, which are not checked.
    pub(super) fn skip(&mut self, count: usize) {
        self.at += count;
    }
}

/// A writer that fills a message from its first bit to its last, over bytes that it has set to
/// zero.
pub(super) struct Writer<'out> {
    out: &'out mut [u8],
    at: usize,
}

impl<'out> Writer<'out> {
    pub(super) fn new(out: &'out mut [u8]) -> Self {
        out.fill(0);
        Self { out, at: 0 }
    }

    /// Writes the low `count` bits of `value`.
    pub(super) fn bits(&mut self, value: u64, count: usize) {
        for shift in (0..count).rev() {
            let byte = self.out.get_mut(self.at / 8).expect(WITHIN);
            *byte |= ((value >> shift & 1) as u8) << (7 - self.at % 8);
            self.at += 1;
        }
    }

    /// Writes `bytes` to the front of `room` bytes, the rest of which stays zero.
    pub(super) fn bytes(&mut self, bytes: &[u8], room: usize) {
        debug_assert!(self.at.is_multiple_of(8), "bytes begin at a byte");
        let start = self.at / 8;
        self.skip(8 * room);
        self.out.get_mut(start..start + bytes.len()).expect(WITHIN).copy_from_slice(bytes);
    }

    /// Skips reserved bits, which stay zero.
    pub(super) fn skip(&mut self, count: usize) {
        self.at += count;
    }
}

/// Declares a struct by its layout: the fields in the order of the wire, each as wide as its type,
/// with the `reserved` bits after them.
macro_rules! layout {
    ($(#[$doc:meta])* $vis:vis struct $name:ident $(<$lt:lifetime>)? {
        $($(#[$field_doc:meta])* $field:ident: $type:ty $(, reserved $gap:literal)?;)+
    }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
        $vis struct $name $(<$lt>)? {
            $($(#[$field_doc])* $vis $field: $type,)+
        }

        impl<'bytes $(: $lt, $lt)?> $crate::wire::cm::layout::Field<'bytes> for $name $(<$lt>)? {
            const BITS: usize =
                0 $(+ <$type as $crate::wire::cm::layout::Field<'bytes>>::BITS $(+ $gap)?)+;

            fn read(
                from: &mut $crate::wire::cm::layout::Reader<'bytes>,
            ) -> Result<Self, $crate::wire::Malformed> {
                $(
                    let $field = from.take()?;
                    $(from.skip($gap);)?
                )+
                Ok(Self { $($field),+ })
            }

            fn write(&self, to: &mut $crate::wire::cm::layout::Writer<'_>) {
                $(
                    self.$field.write(to);
                    $(to.skip($gap);)?
                )+
            }
        }
    };
}
pub(super) use layout;

/// Implements [`Field`] for integers that go on the wire whole.
macro_rules! whole_field {
    ($($name:ident)+) => {$(
        impl Field<'_> for $name {
            const BITS: usize = 8 * size_of::<Self>();

            fn read(from: &mut Reader<'_>) -> Result<Self, Malformed> {
                from.number(Self::BITS).map(Self)
            }

            fn write(&self, to: &mut Writer<'_>) {
                to.bits(u64::from(self.0), Self::BITS);
            }
        }
    )+};
}
pub(super) use whole_field;

/// Implements [`Field`] for integers of which only the low bits go on the wire.
macro_rules! narrow_field {
    ($($name:ident)+) => {$(
        impl Field<'_> for $name {
            const BITS: usize = $name::BITS as usize;

            fn read(from: &mut Reader<'_>) -> Result<Self, Malformed> {
                from.number(<Self as Field>::BITS).map(Self::new)
            }

            fn write(&self, to: &mut Writer<'_>) {
                to.bits(u64::from(self.get()), <Self as Field>::BITS);
            }
        }
    )+};
}
pub(super) use narrow_field;

whole_field! { CaGuid CommId Lid Pkey Qkey ServiceId TransactionId }
narrow_field! { FlowLabel Psn Qpn }

impl Field<'_> for bool {
    const BITS: usize = 1;

    fn read(from: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(from.bits(1) != 0)
    }

    fn write(&self, to: &mut Writer<'_>) {
        to.bits(u64::from(*self), 1);
    }
}

impl Field<'_> for Gid {
    const BITS: usize = 128;

    fn read(from: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Self(from.array()))
    }

    fn write(&self, to: &mut Writer<'_>) {
        to.bytes(&self.0, 16);
    }
}
