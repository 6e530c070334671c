//! Why an endpoint refuses a connection: the private data of the connection manager's REJ.

use std::fmt;

/// Why an endpoint refuses whoever asks for a connection. On the wire it is text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Refusal {
    /// What was said is no hello.
    NoHello,
    /// One side has connections for each size of messages, and the other one for all.
    Policy,
    /// The endpoint does not admit the tag that was shown.
    Tag,
    /// There is no room for another peer.
    NoRoom,
}

impl Refusal {
    const ALL: [Self; 4] = [Self::NoHello, Self::Policy, Self::Tag, Self::NoRoom];

    /// The refusal that the private data of a REJ says, behind which may be zeros.
    pub fn from_private(private: &[u8]) -> Option<Self> {
        Self::ALL.into_iter().find(|refusal| private.starts_with(refusal.text().as_bytes()))
    }

    pub fn text(self) -> &'static str {
        match self {
            Self::NoHello => "what asks is no endpoint of Active Messages of this version",
            Self::Policy => {
                "of `Policy::PerSize` and the other policies, both endpoints must have the same"
            }
            Self::Tag => "the endpoint does not admit the tag that was shown",
            Self::NoRoom => {
                "it has no queue pair or no receive left for another peer: close others, or \
                 configure it with more `queue_pairs` or `receives`"
            }
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A REJ has room for 148 bytes.
    #[test]
    fn a_refusal_is_read_as_it_was_written_and_fits_a_rej() {
        for refusal in Refusal::ALL {
            let mut private = refusal.text().as_bytes().to_vec();
            assert!(private.len() <= 148, "{refusal}");
            private.resize(148, 0);
            assert_eq!(Refusal::from_private(&private), Some(refusal));
        }
        assert_eq!(Refusal::from_private(&[0; 148]), None);
    }
}
