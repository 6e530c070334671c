//! The handle by which a program runs collectives over tagged messages, or other links.

use std::fmt;
use std::ops::Deref;

use doorbell_collectives::{Linked, Links};

use super::members::Members;

/// A process's place among the members of a group, by which the process runs collectives with the
/// others. See the [module](super).
///
/// The collectives are the methods of the [group over links](doorbell_collectives::Group), to which
/// this one dereferences. Clones are handles to the same place.
pub struct Group<L: Links = Members>(doorbell_collectives::Group<Linked<L>>);

impl<L: Links> Group<L> {
    /// Makes a group over links to the other members, all of which do so.
    pub fn over(links: L) -> Self {
        Self(doorbell_collectives::Group::over(links))
    }
}

impl<L: Links> Deref for Group<L> {
    type Target = doorbell_collectives::Group<Linked<L>>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl<L: Links> Clone for Group<L> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<L: Links> fmt::Debug for Group<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
