//! Tables of handlers.

use std::fmt;

use super::id::Id;
use crate::arguments::Shape;
use crate::kinds::Named;
use crate::message::{Replied, Request, Returned};
use crate::names::list;
use crate::wire::MOST_HANDLERS;

/// What runs for a request that came, with its words, which may be none of the handler's arguments.
pub(crate) type OnRequest = Box<dyn FnMut(Request<'_>, &[u64]) + Send>;
/// What runs for a reply. It returns whether the words were its arguments.
pub(crate) type OnReply = Box<dyn FnMut(Replied<'_>, &[u64]) -> bool + Send>;
/// What runs for a request that came back.
pub(crate) type OnReturned = Box<dyn FnMut(Returned<'_>) + Send>;

/// The handlers of an endpoint: one table for requests, one for replies, and a handler for what was not
/// delivered.
#[derive(Default)]
pub(crate) struct Tables {
    pub requests: Table<OnRequest>,
    pub replies: Table<OnReply>,
    pub returned: Option<OnReturned>,
    named: Vec<NamedHandler>,
}

/// A handler that has no place yet, and its types for errors.
struct NamedHandler {
    named: Named,
    types: String,
    run: OnRequest,
}

/// Handlers by their indices.
pub(crate) struct Table<H> {
    places: Vec<Option<H>>,
    /// Those whose index the program has chosen.
    ids: Vec<Id>,
}

impl<H> Default for Table<H> {
    fn default() -> Self {
        Self { places: Vec::new(), ids: Vec::new() }
    }
}

impl<H> Table<H> {
    #[track_caller]
    pub fn put(&mut self, id: Id, handler: H) {
        if let Some(there) = self.ids.iter().find(|there| there.index == id.index) {
            panic!("index {} is `{}`: `{}` needs another", id.index, there.name, id.name);
        }
        let index = usize::from(id.index);
        if self.places.len() <= index {
            self.places.resize_with(index + 1, || None);
        }
        self.places[index] = Some(handler);
        self.ids.push(id);
    }

    /// Puts a handler at a place that is free, and returns which one.
    fn put_anywhere(&mut self, handler: H) -> u16 {
        let free = self.places.iter().position(Option::is_none).unwrap_or(self.places.len());
        if free == self.places.len() {
            self.places.push(None);
        }
        self.places[free] = Some(handler);
        free as u16
    }

    /// The handler of an index, if there is one.
    #[inline]
    pub fn get_mut(&mut self, index: u16) -> Option<&mut H> {
        self.places.get_mut(usize::from(index))?.as_mut()
    }

    /// All whose index the program has chosen.
    pub fn ids(&self) -> impl Iterator<Item = Id> {
        self.ids.iter().copied()
    }

    fn len(&self) -> usize {
        self.places.iter().flatten().count()
    }
}

impl fmt::Debug for Tables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = self.named.iter().map(|handler| handler.named.name);
        f.debug_struct("Handlers")
            .field("named", &named.collect::<Vec<_>>())
            .field("requests", &self.requests.ids().collect::<Vec<_>>())
            .field("replies", &self.replies.ids().collect::<Vec<_>>())
            .field("returned", &self.returned.is_some())
            .finish()
    }
}

impl Tables {
    /// Adds a handler that peers find by its name.
    #[track_caller]
    pub fn put_named(&mut self, named: Named, types: String, run: OnRequest) {
        let Named { name, .. } = named;
        if self.named.iter().any(|there| there.named.name == name) {
            panic!("`{name}` has a handler already: another needs another name");
        }
        assert!(
            self.named.len() + self.requests.len() < MOST_HANDLERS,
            "`{name}` is one too many: an endpoint has {MOST_HANDLERS} handlers at the most"
        );
        self.named.push(NamedHandler { named, types, run });
    }

    /// Adds all of other tables.
    #[track_caller]
    pub fn merge(&mut self, other: Self) {
        let Self { requests, replies, returned, named } = other;
        merge(&mut self.requests, requests);
        merge(&mut self.replies, replies);
        self.returned = returned.or(self.returned.take());
        named.into_iter().for_each(|NamedHandler { named, types, run }| {
            self.put_named(named, types, run);
        });
    }

    /// Gives each named handler a place, and returns the [listing](crate::names) of them all.
    pub fn place_named(&mut self) -> Vec<u8> {
        let mut listing = Vec::new();
        for NamedHandler { named, types, run } in self.named.drain(..) {
            let place = self.requests.put_anywhere(run);
            list(&mut listing, named, place, &types);
        }
        listing
    }

    /// What tells these tables from others, as far as the program has chosen the places.
    pub fn digest(&self) -> u64 {
        let mut all: Vec<(usize, Id)> = self.requests.ids().map(|id| (0, id)).collect();
        all.extend(self.replies.ids().map(|id| (1, id)));
        all.sort_by_key(|(table, id)| (*table, id.index));
        let mix = |hash: Shape, (_, id): (usize, Id)| {
            let words = [u64::from(id.index), id.shape.0];
            let hash = words.iter().fold(hash, |hash, word| Shape(hash.0.rotate_left(17) ^ word));
            hash.and(id.name)
        };
        all.into_iter().fold(Shape::of("handlers"), mix).0
    }
}

#[track_caller]
fn merge<H>(table: &mut Table<H>, other: Table<H>) {
    let Table { mut places, ids } = other;
    for id in ids {
        if let Some(handler) = places[usize::from(id.index)].take() {
            table.put(id, handler);
        }
    }
}
