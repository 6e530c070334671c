//! Tags that peers show, and the peers that an endpoint admits by them.

use std::fmt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use doorbell_verbs::floor::locked;

use crate::proof::Claim;

/// A number that a peer shows when it maps an endpoint, and that the endpoint may demand: see
/// [`Admits`]. Every number is a tag like any other. To show none, pass `None` to
/// [`Endpoint::map`](crate::Endpoint::map).
///
/// The number never goes over the network. A peer shows it by a proof, which is an HMAC over random
/// numbers that both sides have drawn for the connection, and an endpoint that demands a tag proves
/// first that it knows the tag itself. So neither who listens to the network nor who waits at the
/// address of another learns a tag, or can use what it has heard elsewhere. But whoever has got a
/// proof can try numbers on it: by recording a connection, by asking an endpoint that demands the
/// tag, or by waiting where an endpoint shows a tag that it does not demand itself. A tag that is to
/// keep strangers out must be drawn at random, from all 64 bits:
/// `head -c 8 /dev/urandom | od -An -tx8 | tr -d ' '` prints one. A small number, such as `Tag(7)`, only keeps
/// programs apart that mean no harm. Errors and logs show numbers below 2³² and no others.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Tag(pub u64);

impl From<u64> for Tag {
    fn from(number: u64) -> Self {
        Self(number)
    }
}

impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 < LEAST_SECRET {
            true => write!(f, "tag {:#x}", self.0),
            false => f.write_str("a secret tag"),
        }
    }
}

impl fmt::Debug for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 < LEAST_SECRET {
            true => f.debug_tuple("Tag").field(&self.0).finish(),
            false => f.write_str("Tag(secret)"),
        }
    }
}

/// Numbers below this one were not drawn at random from all 64 bits, but for one of four billion.
const LEAST_SECRET: u64 = 1 << 32;

/// The rule by which an endpoint admits peers, so that they may map it and it takes their messages.
///
/// ```
/// use doorbell_am::{Admits, EndpointConfig, Tag};
///
/// let open = EndpointConfig::default();
/// assert_eq!(open.admits, Admits::Everybody);
/// let for_some = EndpointConfig { admits: Tag(7).into(), ..open };
/// assert_eq!(for_some.admits, Admits::Tagged(Tag(7)));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Admits {
    /// Every peer, whichever tag it shows, and without one.
    #[default]
    Everybody,
    /// Peers that show this tag, by a proof that they know it. A peer that does not is refused
    /// before it gets a connection.
    Tagged(Tag),
    /// No peer, for an endpoint that only sends requests and gets their answers.
    Nobody,
}

impl Admits {
    /// Returns whether a peer is admitted that claims to know a tag, or none.
    pub(crate) fn admits(self, claim: Option<Claim>) -> bool {
        match self {
            Self::Everybody => true,
            Self::Tagged(Tag(tag)) => claim.is_some_and(|claim| claim.is_of(tag)),
            Self::Nobody => false,
        }
    }

    /// Returns the tag that peers must know to be admitted.
    pub(crate) fn demanded(self) -> Option<Tag> {
        match self {
            Self::Tagged(tag) => Some(tag),
            Self::Everybody | Self::Nobody => None,
        }
    }
}

impl From<Tag> for Admits {
    fn from(tag: Tag) -> Self {
        Self::Tagged(tag)
    }
}

/// The tag that the peer of a link shows, and whether the endpoint admits it. The answer is needed
/// for every message, and so it is decided once, when either changes. The writer holds the lock of
/// [`LocalEndpoint::admits`](crate::link::LocalEndpoint::admits).
#[derive(Default, Debug)]
pub(crate) struct Admission {
    admitted: AtomicBool,
    /// The peer's claim to know a tag. Whether it is a certain tag is found out when the endpoint
    /// demands one.
    claim: Mutex<Option<Box<Claim>>>,
}

impl Admission {
    #[inline]
    pub fn is_admitted(&self) -> bool {
        self.admitted.load(Ordering::Relaxed)
    }

    /// Notes the tag that the peer shows from now on, or that it shows none.
    pub fn show(&self, claim: Option<Claim>, admits: Admits) {
        *locked(&self.claim) = claim.map(Box::new);
        self.decide(admits);
    }

    /// Decides again, since the endpoint admits other peers from now on.
    pub fn decide(&self, admits: Admits) {
        let claim = locked(&self.claim).as_deref().copied();
        self.admitted.store(admits.admits(claim), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proof::Statement;

    #[test]
    fn an_endpoint_with_a_tag_admits_that_tag_alone() {
        let claim = |number| {
            let statement = Statement::of("knows", &[]);
            Some(Claim { statement, proof: statement.proven_by(number) })
        };
        for number in [0, 1, u64::MAX] {
            let (shown, other, tagged) = (claim(number), claim(number ^ 2), Tag(number).into());
            assert!(Admits::admits(tagged, shown), "{tagged:?}");
            assert!(!tagged.admits(other) && !tagged.admits(None));
            assert!(Admits::Everybody.admits(shown) && !Admits::Nobody.admits(shown));
        }
        assert!(Admits::Everybody.admits(None) && !Admits::Nobody.admits(None));
    }
}
