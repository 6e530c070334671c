//! Tags that peers show, and the peers that an endpoint admits by them.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// A number that a peer shows when it maps an endpoint, and that the endpoint may demand: see
/// [`Admits`]. Every number is a tag like any other. To show none, pass `None` to
/// [`Endpoint::map`](crate::Endpoint::map).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Tag(pub u64);

impl From<u64> for Tag {
    fn from(number: u64) -> Self {
        Self(number)
    }
}

impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "tag {:#x}", self.0)
    }
}

/// The rule by which an endpoint admits peers, so that they may map it and it takes their messages.
///
/// ```
/// use doorbell::am::{Admits, EndpointConfig, Tag};
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
    /// Peers that show this tag.
    Tagged(Tag),
    /// No peer, for an endpoint that only sends requests and gets their answers.
    Nobody,
}

impl Admits {
    pub(crate) fn admits(self, shown: Option<Tag>) -> bool {
        match self {
            Self::Everybody => true,
            Self::Tagged(tag) => shown == Some(tag),
            Self::Nobody => false,
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
    tag: AtomicU64,
    /// Whether the peer shows a tag.
    tagged: AtomicBool,
    admitted: AtomicBool,
}

impl Admission {
    #[inline]
    pub fn is_admitted(&self) -> bool {
        self.admitted.load(Ordering::Relaxed)
    }

    /// Notes the tag that the peer shows from now on, or that it shows none.
    pub fn show(&self, shown: Option<Tag>, admits: Admits) {
        self.tag.store(shown.map_or(0, |Tag(tag)| tag), Ordering::Relaxed);
        self.tagged.store(shown.is_some(), Ordering::Relaxed);
        self.decide(admits);
    }

    /// Decides again, since the endpoint admits other peers from now on.
    pub fn decide(&self, admits: Admits) {
        let tag = Tag(self.tag.load(Ordering::Relaxed));
        let shown = self.tagged.load(Ordering::Relaxed).then_some(tag);
        self.admitted.store(admits.admits(shown), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_with_a_tag_admits_that_tag_alone() {
        for number in [0, 1, u64::MAX] {
            let (tag, other) = (Tag(number), Tag(number ^ 2));
            assert!(Admits::Tagged(tag).admits(Some(tag)), "{tag}");
            assert!(!Admits::Tagged(tag).admits(Some(other)) && !Admits::Tagged(tag).admits(None));
            assert!(Admits::Everybody.admits(Some(tag)) && !Admits::Nobody.admits(Some(tag)));
        }
        assert!(Admits::Everybody.admits(None) && !Admits::Nobody.admits(None));
    }
}
