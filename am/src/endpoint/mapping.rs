//! Mapping peers at places of the translation table.

use std::sync::Arc;

use doorbell_verbs::Name;

use super::core::Core;
use super::refusals::lost;
use super::user::User;
use crate::error::ConnectError;
use crate::link::Link;
use crate::peer::learn;
use crate::wire::Tag;

impl Core {
    /// Maps a peer at a place, by a connection that there is or by a new one.
    pub async fn map(
        self: &Arc<Self>,
        index: usize,
        name: &Name,
        tag: Option<Tag>,
    ) -> Result<Arc<Link>, ConnectError> {
        let most = self.local.config.places;
        is_place((index, most), name)?;
        self.is_free(index, name)?;
        let user = self.reach(name, tag).await?;
        let mut table = self.places_mut();
        put(&mut table, (index, most), name, user)
    }

    /// Maps a peer at the first free place, and learns what its named handlers are.
    pub async fn map_anywhere(
        self: &Arc<Self>,
        name: &Name,
        tag: Option<Tag>,
    ) -> Result<Arc<Link>, ConnectError> {
        if let Some(link) = self.connected_to(name, tag) {
            return Ok(link);
        }
        let user = self.reach(name, tag).await?;
        learn(user.link(), self.local.config.deadline).await.map_err(|why| lost(name, why))?;
        let mut table = self.places_mut();
        let is_free =
            |place: &Option<Arc<Link>>| place.as_ref().is_none_or(|link| link.ending().is_some());
        let index = table.iter().position(is_free).unwrap_or(table.len());
        put(&mut table, (index, self.local.config.places), name, user)
    }

    /// Returns the link by which a peer of that name is mapped, if the link stands and shows the
    /// same tag, and the peer's named handlers are known.
    fn connected_to(self: &Arc<Self>, name: &Name, tag: Option<Tag>) -> Option<Arc<Link>> {
        let table = self.places();
        let mut there = table.iter().flatten().filter(|link| {
            link.is_named(name) && link.names().is_some() && link.ending().is_none()
        });
        // Becoming a user for a moment checks the tag.
        there.find(|link| User::of(self, link, tag).is_some()).cloned()
    }

    /// Fails if a peer is mapped at a place and has not gone.
    fn is_free(&self, index: usize, name: &Name) -> Result<(), ConnectError> {
        match self.place(index) {
            Some(there) if there.ending().is_none() => Err(taken(index, name, &there)),
            _ => Ok(()),
        }
    }
}

/// Fails if a translation table of `most` places does not have the place `index`.
fn is_place((index, most): (usize, usize), name: &Name) -> Result<(), ConnectError> {
    if index < most {
        return Ok(());
    }
    Err(ConnectError::Place { name: name.to_string(), index, most })
}

/// Puts a peer at the place `index` of a translation table of `most` places.
fn put(
    table: &mut Vec<Option<Arc<Link>>>,
    (index, most): (usize, usize),
    name: &Name,
    user: User,
) -> Result<Arc<Link>, ConnectError> {
    is_place((index, most), name)?;
    if table.len() <= index {
        table.resize(index + 1, None);
    }
    match &mut table[index] {
        Some(there) if there.ending().is_none() => Err(taken(index, name, there)),
        // The users of a link that is over need not be counted.
        free => Ok(free.insert(user.stays()).clone()),
    }
}

fn taken(index: usize, name: &Name, there: &Link) -> ConnectError {
    ConnectError::Taken { name: name.to_string(), index, there: there.peer_text().into() }
}
