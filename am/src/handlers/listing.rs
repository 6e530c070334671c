//! Listings of handlers at chosen places, which endpoints compare when they meet.

use crate::handlers::Tables;
use crate::kinds::Id;

/// The table that a handler is in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Which {
    Requests,
    Replies,
}

impl Which {
    pub fn name(self) -> &'static str {
        match self {
            Self::Requests => "requests",
            Self::Replies => "replies",
        }
    }

    fn from_byte(byte: u8) -> Option<Self> {
        [Self::Requests, Self::Replies].into_iter().find(|&which| which as u8 == byte)
    }
}

/// A handler that differs from the other side's handler of the same index.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Difference {
    pub which: Which,
    pub index: u16,
    /// The name of the handler on the side that has compared.
    pub name: String,
}

/// The most bytes of a name in a listing.
const NAME: usize = 255;

/// An entry of a listing: the table, the index, the shape of the arguments, and the name.
struct Entry<'e> {
    which: Which,
    index: u16,
    shape: u64,
    name: &'e [u8],
}

impl<'e> Entry<'e> {
    fn take(bytes: &mut &'e [u8]) -> Option<Self> {
        let &[which, a, b] = bytes.split_off(..3)?.first_chunk()?;
        let shape = *bytes.split_off(..8)?.first_chunk()?;
        let len = *bytes.split_off_first()?;
        let name = bytes.split_off(..len.into())?;
        let (which, index) = (Which::from_byte(which)?, u16::from_be_bytes([a, b]));
        Some(Self { which, index, shape: u64::from_be_bytes(shape), name })
    }

    fn put(&self, bytes: &mut Vec<u8>) {
        bytes.push(self.which as u8);
        bytes.extend(self.index.to_be_bytes());
        bytes.extend(self.shape.to_be_bytes());
        bytes.push(self.name.len() as u8);
        bytes.extend(self.name);
    }

    fn of(which: Which, id: &'e Id) -> Self {
        let name = &id.name.as_bytes()[..id.name.len().min(NAME)];
        Self { which, index: id.index, shape: id.shape.0, name }
    }
}

impl Difference {
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let Self { which, index, ref name } = *self;
        Entry { which, index, shape: 0, name: name.as_bytes() }.put(&mut bytes);
        bytes
    }

    pub fn from_bytes(mut bytes: &[u8]) -> Option<Self> {
        let Entry { which, index, name, .. } = Entry::take(&mut bytes)?;
        Some(Self { which, index, name: String::from_utf8_lossy(name).into_owned() })
    }
}

impl Tables {
    fn ids(&self) -> impl Iterator<Item = (Which, Id)> {
        let requests = self.requests.ids().map(|id| (Which::Requests, id));
        requests.chain(self.replies.ids().map(|id| (Which::Replies, id)))
    }

    /// Lists the handlers at chosen places, in pieces of at most `most` bytes, or of one entry.
    pub(crate) fn listing(&self, most: usize) -> Vec<Vec<u8>> {
        let mut pieces = vec![Vec::new()];
        for (which, id) in self.ids() {
            let mut entry = Vec::new();
            Entry::of(which, &id).put(&mut entry);
            match pieces.last_mut() {
                Some(piece) if piece.len() + entry.len() <= most => piece.extend(entry),
                _ => pieces.push(entry),
            }
        }
        pieces
    }

    /// Compares the handlers with a listing of the other side. Returns the first handler that both
    /// sides have and that differs.
    pub(crate) fn differs(&self, mut listing: &[u8]) -> Option<Difference> {
        while let Some(theirs) = Entry::take(&mut listing) {
            let same_place =
                |(which, id): &(Which, Id)| *which == theirs.which && id.index == theirs.index;
            if let Some((which, id)) = self.ids().find(same_place) {
                let own = Entry::of(which, &id);
                if (own.shape, own.name) != (theirs.shape, theirs.name) {
                    let name = id.name.to_owned();
                    return Some(Difference { which, index: id.index, name });
                }
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::handlers::Handlers;
    use crate::kinds::{ReplyId, RequestId};

    const LONG: &str =
        "a name that is longer than what is customary, so that a few of them fill a piece";

    fn handlers(others: &'static str, from: u16) -> Tables {
        let add = |handlers: Handlers, index: u16| {
            let name = if index == 7 { others } else { LONG };
            handlers.request(RequestId::<u64>::new(index, name), |_, _| {})
        };
        let handlers = (from..20).fold(Handlers::new(), add);
        handlers.reply(ReplyId::<()>::new(3, "reply"), |_, ()| {}).tables
    }

    fn compared(near: &Tables, far: &Tables) -> Option<Difference> {
        near.listing(300).iter().find_map(|piece| far.differs(piece))
    }

    #[test]
    fn listings_are_compared_up_to_the_first_handler_that_differs() {
        let (one, other) = (handlers("seven", 0), handlers("sieben", 0));
        assert_eq!(one.listing(300).len(), 7);
        assert_eq!(compared(&one, &one), None);
        let found = compared(&one, &other).expect("one has another name");
        assert_eq!((found.which, found.index, &*found.name), (Which::Requests, 7, "sieben"));
        assert_eq!(Difference::from_bytes(&found.to_bytes()), Some(found));
        let later = handlers("seven", 8);
        assert_eq!((compared(&later, &other), compared(&other, &later)), (None, None));
        let words = Handlers::new().reply(ReplyId::<u8>::new(3, "reply"), |_, _| {}).tables;
        let found = compared(&words, &one).expect("it has other arguments");
        assert_eq!((found.which, found.index), (Which::Replies, 3));
    }
}
