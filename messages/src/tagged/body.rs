//! Bodies of messages that are sent: one piece of memory, or several that are gathered.

use bytes::{Bytes, BytesMut};

/// The body of a message to send: bytes, or several pieces of bytes that the receiver gets as one.
///
/// A body is made of whatever becomes [`Bytes`], or of a list of them:
///
/// ```
/// use bytes::Bytes;
/// use doorbell_messages::Body;
///
/// let (header, payload) = (Bytes::from("header"), Bytes::from(vec![7; 1000]));
/// let gathered = Body::from([header, payload]);
/// assert_eq!(gathered.len(), 1006);
/// ```
#[derive(Clone, Debug)]
pub struct Body(Pieces);

#[derive(Clone, Debug)]
enum Pieces {
    One(Bytes),
    Many(Vec<Bytes>),
}

impl Body {
    /// Returns the number of bytes of all pieces together.
    pub fn len(&self) -> usize {
        self.pieces().iter().map(Bytes::len).sum()
    }

    /// Returns whether the body has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(crate) fn pieces(&self) -> &[Bytes] {
        match &self.0 {
            Pieces::One(bytes) => std::slice::from_ref(bytes),
            Pieces::Many(pieces) => pieces,
        }
    }

    /// Returns the body in one piece. Several pieces are copied.
    pub(crate) fn joined(self) -> Bytes {
        match self.0 {
            Pieces::One(bytes) => bytes,
            Pieces::Many(pieces) => {
                let mut joined = BytesMut::with_capacity(pieces.iter().map(Bytes::len).sum());
                pieces.iter().for_each(|piece| joined.extend_from_slice(piece));
                joined.freeze()
            }
        }
    }
}

impl<const N: usize> From<[Bytes; N]> for Body {
    fn from(pieces: [Bytes; N]) -> Self {
        Self::from(Vec::from(pieces))
    }
}

impl From<Vec<Bytes>> for Body {
    fn from(pieces: Vec<Bytes>) -> Self {
        Self(Pieces::Many(pieces))
    }
}

macro_rules! from_one_piece {
    ($($one:ty),*) => {$(
        impl From<$one> for Body {
            fn from(bytes: $one) -> Self {
                Self(Pieces::One(bytes.into()))
            }
        }
    )*};
}

from_one_piece!(Bytes, BytesMut, Vec<u8>, Box<[u8]>, String, &'static str, &'static [u8]);
