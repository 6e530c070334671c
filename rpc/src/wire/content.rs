//! Metadata and body in the payload of one message.

use bytes::{BufMut, Bytes, BytesMut};

use super::head::Flags;
use crate::metadata::{MOST_METADATA, Metadata, MetadataError};
use crate::status::Status;

/// Metadata and a body, encoded for one message.
pub struct Content {
    pub flags: Flags,
    /// The metadata, followed by the body or, for a body that is too long, by its length.
    pub payload: Bytes,
    /// The body, if it is too long for a message and follows by RDMA.
    pub long: Option<Bytes>,
}

impl Content {
    /// The most bytes of metadata that fit a message of `most` bytes.
    pub fn most_metadata(most: usize) -> usize {
        MOST_METADATA.min(most.saturating_sub(LENGTH))
    }

    /// Encodes metadata and a body for a message of at most `most` bytes. A body that does not fit
    /// is left to follow by RDMA. A body without metadata is not copied.
    ///
    /// # Errors
    /// When the metadata is too long.
    pub fn new(metadata: &Metadata, body: Bytes, most: usize) -> Result<Self, Status> {
        let (front, allowed) = (metadata.encoded_len(), Self::most_metadata(most));
        let Some(length) = u16::try_from(front).ok().filter(|_| front <= allowed) else {
            return Err(Status::resource_exhausted(format!(
                "the metadata takes {front} bytes, with 4 for each pair, and {allowed} are allowed: put what \
                 is longer into the body"
            )));
        };
        let long = front + body.len() > most;
        let flags = Flags { metadata: length, long, ..Flags::default() };
        if front == 0 && !long {
            return Ok(Self { flags, payload: body, long: None });
        }
        let mut bytes = BytesMut::with_capacity(front + if long { LENGTH } else { body.len() });
        metadata.encode(&mut bytes);
        if long {
            bytes.put_u64(body.len() as u64);
            return Ok(Self { flags, payload: bytes.freeze(), long: Some(body) });
        }
        bytes.extend_from_slice(&body);
        Ok(Self { flags, payload: bytes.freeze(), long: None })
    }
}

/// The number of bytes that a body's length takes.
const LENGTH: usize = 8;

/// Metadata and a body, or the length of a body, that were received.
pub struct Received {
    pub metadata: Metadata,
    pub body: Bytes,
    /// The length of the body, if the body follows by RDMA.
    pub long: Option<u64>,
}

/// Splits a payload into metadata and body.
///
/// # Errors
/// When the payload is shorter than its flags say, or the metadata is malformed.
pub fn split(flags: Flags, mut payload: Bytes) -> Result<Received, MetadataError> {
    if payload.len() < usize::from(flags.metadata) {
        return Err(MetadataError);
    }
    let front = payload.split_to(usize::from(flags.metadata));
    let metadata = if front.is_empty() { Metadata::new() } else { Metadata::decode(front)? };
    let long = match flags.long {
        false => None,
        true => {
            let length = payload.first_chunk().copied().ok_or(MetadataError)?;
            Some(u64::from_be_bytes(length))
        }
    };
    Ok(Received { metadata, body: payload, long })
}
