//! Plain data: types whose bytes in memory are their bytes in a message.

use zerocopy::{FromBytes, Immutable, IntoBytes};

/// A type that is sent as its bytes lie in memory: a number, or a struct of numbers without gaps.
/// `Vec<T>` and `Box<[T]>` of plain data are payloads, and so is a struct by itself.
///
/// Both machines must have the same order of bytes: an endpoint whose order is another has other
/// kinds of messages, and a call between the two fails with
/// [`CallError::OtherTypes`](crate::CallError).
///
/// A struct of a program's own derives zerocopy's traits, which check that it has no gaps, and this
/// one:
///
/// ```
/// use doorbell_am::{Call, Plain};
/// use zerocopy::{FromBytes, Immutable, IntoBytes};
///
/// #[derive(Plain, FromBytes, IntoBytes, Immutable, Clone, Copy)]
/// # #[doorbell(crate = "doorbell_am")]
/// #[repr(C)]
/// struct Point {
///     x: f64,
///     y: f64,
/// }
///
/// const LENGTH: Call<Vec<Point>, f64> = Call::new("length of a line");
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no plain data",
    note = "numbers are plain data, and structs of them with `#[derive(Plain, FromBytes, IntoBytes, \
            Immutable, Clone, Copy)]` and `#[repr(C)]`"
)]
pub trait Plain: FromBytes + IntoBytes + Immutable + Copy + 'static {
    /// The name by which endpoints tell this type from others when they compare their handlers.
    const KIND: &'static str;
}

macro_rules! plain_numbers {
    ($($number:ident)+) => {$(
        impl Plain for $number {
            const KIND: &'static str = stringify!($number);
        }
    )+};
}

plain_numbers! { u8 u16 u32 u64 u128 i8 i16 i32 i64 i128 f32 f64 }

/// The name of this machine's order of bytes.
pub(crate) const ORDER: &str = if cfg!(target_endian = "little") { "little" } else { "big" };

/// Decodes bytes as values, or returns `None` if they are not a whole number of values.
pub(crate) fn values<T: Plain>(bytes: &[u8]) -> Option<Vec<T>> {
    let size = size_of::<T>();
    if size == 0 || !bytes.len().is_multiple_of(size) {
        return None;
    }
    let mut values = T::new_vec_zeroed(bytes.len() / size).ok()?;
    values.as_mut_slice().as_mut_bytes().copy_from_slice(bytes);
    Some(values)
}
