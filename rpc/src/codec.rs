//! Codecs, which turn values into the bytes of a body, and bytes into values.

use std::error::Error;

use bytes::{Bytes, BytesMut};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::status::{Status, chain};

/// The error of a codec, of any type.
pub type CodecError = Box<dyn Error + Send + Sync>;

/// Turns values of a type into the bytes of a body, and bytes into values.
///
/// [`Postcard`] is a codec of all types that serde can serialize, and [`Raw`] one of bytes that are
/// sent as they are. A codec of one's own is a type without values:
///
/// ```
/// use bytes::{Bytes, BytesMut};
/// use doorbell_rpc::{Codec, CodecError};
///
/// /// Text as lines that end with a newline.
/// struct Lines;
///
/// impl Codec<String> for Lines {
///     fn encode(line: &String, into: &mut BytesMut) -> Result<(), CodecError> {
///         into.extend_from_slice(line.as_bytes());
///         into.extend_from_slice(b"\n");
///         Ok(())
///     }
///
///     fn decode(bytes: Bytes) -> Result<String, CodecError> {
///         let text = std::str::from_utf8(&bytes)?;
///         Ok(text.strip_suffix('\n').ok_or("the line has no end")?.to_owned())
///     }
/// }
/// ```
pub trait Codec<T>: 'static {
    /// Appends the bytes of a value to `into`.
    ///
    /// # Errors
    /// When the value can't be encoded. The call fails with [`Internal`](crate::Code::Internal).
    fn encode(value: &T, into: &mut BytesMut) -> Result<(), CodecError>;

    /// Reads a value from all of `bytes`, which may have been sent by anybody.
    ///
    /// # Errors
    /// When the bytes are not a value of the type. The call fails with
    fn decode(bytes: Bytes) -> Result<T, CodecError>;

    /// The bytes of a value. A codec whose values contain their bytes already overrides this to
    /// avoid a copy.
    ///
    /// # Errors
    /// The errors of [`encode`](Self::encode).
    fn into_bytes(value: T) -> Result<Bytes, CodecError> {
        let mut bytes = BytesMut::new();
        Self::encode(&value, &mut bytes)?;
        Ok(bytes.freeze())
    }
}

/// The codec postcard, a compact format for every type with serde's `Serialize` and `Deserialize`.
///
/// Fields are identified by their order alone, so client and server must have the same types.
#[derive(Clone, Copy, Debug)]
pub enum Postcard {}

impl<T: Serialize + DeserializeOwned> Codec<T> for Postcard {
    fn encode(value: &T, into: &mut BytesMut) -> Result<(), CodecError> {
        postcard::serialize_with_flavor(value, Appending(into)).map_err(Into::into)
    }

    fn decode(bytes: Bytes) -> Result<T, CodecError> {
        let (value, rest) = postcard::take_from_bytes(&bytes)?;
        match rest.len() {
            0 => Ok(value),
            more => Err(format!("{more} bytes follow the value").into()),
        }
    }
}

/// Appends what postcard serializes to a buffer.
struct Appending<'b>(&'b mut BytesMut);

impl postcard::ser_flavors::Flavor for Appending<'_> {
    type Output = ();

    fn try_extend(&mut self, data: &[u8]) -> postcard::Result<()> {
        self.0.extend_from_slice(data);
        Ok(())
    }

    fn try_push(&mut self, data: u8) -> postcard::Result<()> {
        self.0.extend_from_slice(&[data]);
        Ok(())
    }

    fn finalize(self) -> postcard::Result<()> {
        Ok(())
    }
}

/// The codec of bytes, which are sent as they are and without a copy.
#[derive(Clone, Copy, Debug)]
pub enum Raw {}

impl Codec<Bytes> for Raw {
    fn encode(value: &Bytes, into: &mut BytesMut) -> Result<(), CodecError> {
        into.extend_from_slice(value);
        Ok(())
    }

    fn decode(bytes: Bytes) -> Result<Bytes, CodecError> {
        Ok(bytes)
    }

    fn into_bytes(value: Bytes) -> Result<Bytes, CodecError> {
        Ok(value)
    }
}

/// Encodes a value that a server or a client sends. A failure becomes a status.
pub(crate) fn encoded<T, C: Codec<T>>(value: T) -> Result<Bytes, Status> {
    C::into_bytes(value).map_err(|why| {
        Status::internal(format!("encoding a {}: {}", std::any::type_name::<T>(), chain(&*why)))
    })
}
