//! Tables of handlers, by index and by name.

use std::fmt;

use super::{Replied, Request, Returned};
use crate::arguments::{Arguments, Shape};
use crate::kinds::{Id, Named, list};
use crate::wire::MOST_HANDLERS;

/// A request handler that decodes the arguments itself, from the request and its words.
pub(crate) type OnRequest = Box<dyn HandleRequest>;

/// A handler of requests: a function, or one that collects requests.
pub(crate) trait HandleRequest: Send {
    /// Handles a request of a peer. Returns whether the handler has collected the request, so that
    /// [`finish`](Self::finish) is to be called.
    fn run(&mut self, request: Request<'_>, words: &[u64]) -> bool;

    /// Handles what was collected. Returns whether a task was woken.
    fn finish(&mut self) -> bool {
        false
    }
}

impl<F: FnMut(Request<'_>, &[u64]) + Send> HandleRequest for F {
    #[inline]
    fn run(&mut self, request: Request<'_>, words: &[u64]) -> bool {
        self(request, words);
        false
    }
}

/// Makes a request handler that decodes arguments of a type, and sends back requests with others.
pub(super) fn with_arguments<A: Arguments>(
    mut run: impl FnMut(Request<'_>, A) + Send + 'static,
) -> OnRequest {
    Box::new(move |mut request: Request<'_>, words: &[u64]| {
        let arguments = A::take(words, &mut request.parts());
        match arguments {
            Some(arguments) => run(request, arguments),
            None => request.misfits(),
        }
    })
}

/// A reply handler, which returns whether the words were its arguments.
pub(crate) type OnReply = Box<dyn FnMut(Replied<'_>, &[u64]) -> bool + Send>;
/// A handler of requests that came back.
pub(crate) type OnReturned = Box<dyn FnMut(Returned<'_>) + Send>;

/// The handlers of an endpoint: a table for requests, a table for replies, and a handler of
/// requests that came back.
#[derive(Default)]
pub(crate) struct Tables {
    pub requests: Table<OnRequest>,
    pub replies: Table<OnReply>,
    pub returned: Option<OnReturned>,
    named: Vec<NamedHandler>,
}

/// A named handler that has no place yet, with its types for errors.
struct NamedHandler {
    named: Named,
    types: String,
    run: OnRequest,
}

/// A table of handlers by index.
pub(crate) struct Table<H> {
    places: Vec<Option<H>>,
    /// The handlers whose index the program has chosen.
    ids: Vec<Id>,
}

impl<H> Default for Table<H> {
    fn default() -> Self {
        Self { places: Vec::new(), ids: Vec::new() }
    }
}

impl<H> Table<H> {
    /// Puts a handler at the index that the program has chosen.
    #[track_caller]
    pub fn put(&mut self, id: Id, handler: H) {
        let index = usize::from(id.index);
        if self.places.len() <= index {
            self.places.resize_with(index + 1, || None);
        }
        if self.places[index].is_some() {
            let there = self.ids.iter().find(|there| there.index == id.index);
            let there = there.map_or("", |there| there.name);
            panic!("index {index} is `{there}`: `{}` needs another", id.name);
        }
        self.places[index] = Some(handler);
        self.ids.push(id);
    }

    /// Puts a handler at the first free place from an index on, and returns the place.
    fn put_from(&mut self, index: usize, handler: H) -> usize {
        let rest = self.places.get(index..).unwrap_or_default();
        let free = rest.iter().position(Option::is_none);
        let free = free.map_or(self.places.len(), |free| index + free);
        if free == self.places.len() {
            self.places.push(None);
        }
        self.places[free] = Some(handler);
        free
    }

    /// Returns the handler at an index, if there is one.
    #[inline]
    pub fn get_mut(&mut self, index: u16) -> Option<&mut H> {
        self.places.get_mut(usize::from(index))?.as_mut()
    }

    /// Gives up room for further handlers.
    fn shrink(&mut self) {
        self.places.shrink_to_fit();
        self.ids.shrink_to_fit();
    }

    /// Returns the handlers whose index the program has chosen.
    fn into_placed(self) -> impl Iterator<Item = (Id, H)> {
        let Self { mut places, ids } = self;
        ids.into_iter().filter_map(move |id| Some((id, places[usize::from(id.index)].take()?)))
    }

    /// Returns the indices that the program has chosen.
    pub fn ids(&self) -> impl Iterator<Item = Id> {
        self.ids.iter().copied()
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
    /// Adds a request handler at a place that the program has chosen.
    #[track_caller]
    pub fn put_request(&mut self, id: Id, run: OnRequest) {
        self.has_room_for(id.name);
        self.requests.put(id, run);
    }

    #[track_caller]
    fn has_room_for(&self, name: &str) {
        assert!(
            self.named.len() + self.requests.ids.len() < MOST_HANDLERS,
            "`{name}` is one too many: an endpoint has {MOST_HANDLERS} handlers at the most"
        );
    }

    /// Adds a request handler that peers find by its name.
    #[track_caller]
    pub fn put_named(&mut self, named: Named, types: String, run: OnRequest) {
        let Named { name, .. } = named;
        if self.named.iter().any(|there| there.named.name == name) {
            panic!("`{name}` has a handler already: another needs another name");
        }
        self.has_room_for(name);
        self.named.push(NamedHandler { named, types, run });
    }

    /// Adds all handlers of other tables.
    #[track_caller]
    pub fn merge(&mut self, other: Self) {
        let Self { requests, replies, returned, named } = other;
        requests.into_placed().for_each(|(id, run)| self.put_request(id, run));
        replies.into_placed().for_each(|(id, run)| self.replies.put(id, run));
        self.returned = returned.or(self.returned.take());
        named.into_iter().for_each(|NamedHandler { named, types, run }| {
            self.put_named(named, types, run);
        });
    }

    /// Gives each named handler a place, and returns the listing of the named handlers. No handlers
    /// are added behind this.
    pub fn place_named(&mut self) -> Vec<u8> {
        let (mut listing, mut next) = (Vec::new(), 0);
        for NamedHandler { named, types, run } in self.named.drain(..) {
            let place = self.requests.put_from(next, run);
            list(&mut listing, named, place as u16, &types);
            next = place + 1;
        }
        self.requests.shrink();
        self.replies.shrink();
        listing
    }

    /// Returns a digest of the handlers whose places the program has chosen.
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
