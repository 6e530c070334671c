//! The last words of an endpoint, which go with the end of a connection.

/// The first byte of the last words. A connection that ends without any has zeros there.
const MARK: u8 = 0xA1;

/// The last words of an endpoint: how many requests it has handled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Parting {
    /// The count of the requests that the endpoint has handled by the connection, modulo 65,536.
    pub handled: u16,
}

impl Parting {
    pub fn to_bytes(self) -> [u8; 3] {
        let [high, low] = self.handled.to_be_bytes();
        [MARK, high, low]
    }

    /// Decodes last words, behind which zeros may follow. Returns `None` if there are none.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        match *bytes {
            [MARK, high, low, ..] => Some(Self { handled: u16::from_be_bytes([high, low]) }),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_words_are_read_as_they_were_written_and_others_are_none() {
        let parting = Parting { handled: 0x1234 };
        let mut padded = parting.to_bytes().to_vec();
        padded.resize(220, 0);
        assert_eq!(Parting::from_bytes(&padded), Some(parting));
        assert_eq!(Parting::from_bytes(&[0; 220]), None);
        assert_eq!(Parting::from_bytes(&[MARK, 1]), None);
    }
}
