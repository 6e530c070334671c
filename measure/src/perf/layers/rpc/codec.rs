//! How the bodies of the calls are encoded.

use bytes::Bytes;
use doorbell_rpc::{Codec, CodecError};

/// The codec of requests that are bytes, and answers that are numbers.
pub enum Body {}

impl Codec<Bytes> for Body {
    fn encode(value: &Bytes, into: &mut bytes::BytesMut) -> Result<(), CodecError> {
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

impl Codec<u64> for Body {
    fn encode(value: &u64, into: &mut bytes::BytesMut) -> Result<(), CodecError> {
        into.extend_from_slice(&value.to_le_bytes());
        Ok(())
    }

    fn decode(bytes: Bytes) -> Result<u64, CodecError> {
        Ok(u64::from_le_bytes(bytes[..].try_into()?))
    }
}
