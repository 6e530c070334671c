//! Private data: the bytes that programs exchange when they connect and disconnect.

use std::fmt;
use std::ops::Deref;

/// Private data that came from the peer's program with a message of the connection manager. Zeros
/// follow up to the size of the message's field, since the wire does not carry a length.
#[derive(Clone, PartialEq, Eq, Hash, Default)]
pub struct Private(Vec<u8>);

impl From<Vec<u8>> for Private {
    fn from(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }
}

impl From<Private> for Vec<u8> {
    fn from(private: Private) -> Self {
        private.0
    }
}

impl From<&[u8]> for Private {
    fn from(bytes: &[u8]) -> Self {
        Self(bytes.into())
    }
}

impl AsRef<[u8]> for Private {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl Deref for Private {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

/// Shows the bytes as text, without the zeros behind them.
impl fmt::Debug for Private {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = self.0.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
        write!(f, "\"{}\"", self.0[..end].escape_ascii())
    }
}

#[cfg(all(test, not(verbs_loom)))]
mod tests {
    use super::*;

    #[test]
    fn private_data_is_shown_without_the_zeros_that_the_wire_adds() {
        let mut said = b"not\0today\xFF".to_vec();
        said.resize(148, 0);
        assert_eq!(format!("{:?}", Private::from(said)), r#""not\x00today\xff""#);
        assert_eq!(format!("{:?}", Private::from(vec![0; 148])), r#""""#);
    }
}
