//! The reasons for which an endpoint refuses a connection, as private data of a REJ message.

use std::fmt;

/// The reason for which an endpoint refuses a connection. On the wire, a reason is its text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Refusal {
    /// The private data of the request is no greeting.
    NoHello,
    /// The two sides differ in their policy: a connection for each size class, or one for all
    /// messages.
    Policy,
    /// The endpoint does not admit the tag that was shown.
    Tag,
    /// The challenge that the greeting answers is too old, or was answered before.
    Stale,
    /// The endpoint has no room for another peer.
    NoRoom,
    /// The endpoint accepts no further peers.
    ShutsDown,
}

impl Refusal {
    const ALL: [Self; 6] =
        [Self::NoHello, Self::Policy, Self::Tag, Self::Stale, Self::NoRoom, Self::ShutsDown];

    /// Decodes the private data of a REJ, which may end with zeros.
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
            Self::Stale => "the endpoint's challenge is too old, or was answered before",
            Self::NoRoom => {
                "it has no queue pair or no receive left for another peer: close others, or \
                 configure it with more `queue_pairs` or `receives`"
            }
            Self::ShutsDown => "it is shutting down, and accepts no further peers",
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

    #[test]
    fn a_refusal_fits_a_rej_and_is_decoded_as_it_was_encoded() {
        for refusal in Refusal::ALL {
            let mut private = refusal.text().as_bytes().to_vec();
            // A REJ has room for 148 bytes.
            assert!(private.len() <= 148, "{refusal}");
            private.resize(148, 0);
            assert_eq!(Refusal::from_private(&private), Some(refusal));
        }
        assert_eq!(Refusal::from_private(&[0; 148]), None);
    }
}
