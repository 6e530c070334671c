//! Metadata and body in one payload.

use bytes::{Bytes, BytesMut};

use crate::metadata::{MOST_METADATA, Metadata, MetadataError};
use crate::status::Status;

/// Metadata and a body behind it, as they are sent. A body without metadata is not copied.
pub struct Content {
    /// The length of the metadata.
    pub metadata: u16,
    pub bytes: Bytes,
}

impl Content {
    /// Metadata and a body.
    ///
    /// # Errors
    /// When the metadata is too long.
    pub fn new(metadata: &Metadata, body: Bytes) -> Result<Self, Status> {
        if metadata.is_empty() {
            return Ok(Self { metadata: 0, bytes: body });
        }
        let len = metadata.encoded_len();
        if len > MOST_METADATA {
            return Err(Status::resource_exhausted(format!(
                "the metadata takes {len} bytes, and {MOST_METADATA} are allowed: put what is longer \
                 into the body"
            )));
        }
        let mut bytes = BytesMut::with_capacity(len + body.len());
        metadata.encode(&mut bytes);
        bytes.extend_from_slice(&body);
        Ok(Self { metadata: len as u16, bytes: bytes.freeze() })
    }
}

/// Metadata and a body that were received.
pub type Split = (Metadata, Bytes);

/// Takes metadata of a length and the body behind it apart.
///
/// # Errors
/// When the payload is shorter, or the metadata malformed.
pub fn split(metadata: u16, mut payload: Bytes) -> Result<Split, MetadataError> {
    if metadata == 0 {
        return Ok((Metadata::new(), payload));
    }
    if payload.len() < usize::from(metadata) {
        return Err(MetadataError);
    }
    let front = payload.split_to(usize::from(metadata));
    Ok((Metadata::decode(front)?, payload))
}
