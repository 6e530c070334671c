//! Named handlers, and the place of each in a peer's table.
//!
//! An endpoint lists its named handlers in bytes, which peers ask for in pieces when they first
//! call one of them. An entry of a listing is, with the lowest byte first:
//!
//! | bytes | content |
//! |---|---|
//! | 8 | the number that stands for the name and the types |
//! | 2 | the handler's place |
//! | 1, and as many as that says | the name |
//! | 2, and as many as that says | the types, for errors |

use crate::kinds::{LONGEST_NAME, Named};
use crate::wire::MOST_HANDLERS;

/// The most bytes of the types' text in a listing.
const LONGEST_TYPES: usize = 1000;

/// The length of the longest listing that there can be, 5 MB. Endpoints take no longer one of a
/// peer.
pub(crate) const LONGEST_LISTING: usize = MOST_HANDLERS * (13 + LONGEST_NAME + LONGEST_TYPES);

/// The named handlers of an endpoint, by the numbers that stand for their names and types.
pub(crate) struct Names {
    /// A hash table with open addressing. Its length is a power of two, and at least half of it is
    /// free.
    places: Box<[Option<(u64, u16)>]>,
    listing: Box<[u8]>,
}

/// A handler in a listing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Entry<'l> {
    key: u64,
    place: u16,
    name: &'l [u8],
    types: &'l [u8],
}

impl<'l> Entry<'l> {
    fn take(bytes: &mut &'l [u8]) -> Option<Self> {
        let key = u64::from_le_bytes(*bytes.split_off(..8)?.first_chunk()?);
        let place = u16::from_le_bytes(*bytes.split_off(..2)?.first_chunk()?);
        let len = *bytes.split_off_first()?;
        let name = bytes.split_off(..len.into())?;
        let len = u16::from_le_bytes(*bytes.split_off(..2)?.first_chunk()?);
        let types = bytes.split_off(..len.into())?;
        (usize::from(place) < MOST_HANDLERS).then_some(Self { key, place, name, types })
    }
}

/// Adds an entry to a listing.
pub(crate) fn list(listing: &mut Vec<u8>, Named { name, key }: Named, place: u16, types: &str) {
    let types = &types.as_bytes()[..types.floor_char_boundary(LONGEST_TYPES)];
    listing.extend(key.to_le_bytes());
    listing.extend(place.to_le_bytes());
    listing.push(name.len() as u8);
    listing.extend(name.as_bytes());
    listing.extend((types.len() as u16).to_le_bytes());
    listing.extend(types);
}

/// Why a peer's handler is not found by its name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Missing {
    /// The peer has no handler of that name, but handlers of these names.
    Unknown(Vec<String>),
    /// The peer's handler of that name has these other types.
    OtherTypes(String),
}

impl Names {
    /// Parses a listing, or returns `None` if the bytes are none.
    pub fn of(listing: Vec<u8>) -> Option<Self> {
        let (mut rest, mut entries) = (&listing[..], Vec::new());
        while !rest.is_empty() {
            let Entry { key, place, .. } = Entry::take(&mut rest)?;
            // Bounds the time that a listing takes.
            if entries.len() == MOST_HANDLERS {
                return None;
            }
            entries.push((key, place));
        }
        let mut places = vec![None; (2 * entries.len()).next_power_of_two()];
        let mask = places.len() - 1;
        for entry in entries {
            let mut at = entry.0 as usize & mask;
            while places[at].is_some() {
                at = (at + 1) & mask;
            }
            places[at] = Some(entry);
        }
        Some(Self { places: places.into(), listing: listing.into() })
    }

    /// Returns whether the names were parsed from this listing.
    pub fn is(&self, listing: &[u8]) -> bool {
        *self.listing == *listing
    }

    /// Returns the place of the handler whose name and types hash to `key`.
    #[inline]
    pub fn find(&self, key: u64) -> Option<u16> {
        let mask = self.places.len() - 1;
        let mut at = key as usize & mask;
        // Half of the places are free.
        while let Some((found, place)) = self.places[at & mask] {
            if found == key {
                return Some(place);
            }
            at = (at & mask) + 1;
        }
        None
    }

    /// Returns why a handler of this name was not found.
    #[cold]
    pub fn missing(&self, name: &str) -> Missing {
        let mut rest = &self.listing[..];
        let entries: Vec<Entry<'_>> = std::iter::from_fn(|| Entry::take(&mut rest)).collect();
        let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
        match entries.iter().find(|entry| entry.name == name.as_bytes()) {
            Some(entry) => Missing::OtherTypes(text(entry.types)),
            None => Missing::Unknown(entries.iter().map(|entry| text(entry.name)).collect()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 5] = ["add", "sub", "multiply", "a much longer name than others have", ""];

    fn listing(count: usize) -> (Vec<u8>, Vec<Named>) {
        let mut bytes = Vec::new();
        let all: Vec<Named> = (0..count as u64)
            .map(|number| Named {
                name: NAMES[number as usize % 5],
                key: (number << 60) | (number * 7),
            })
            .collect();
        for (place, &named) in (0..).zip(&all) {
            list(&mut bytes, named, place, "a call of u64 that answers u64");
        }
        (bytes, all)
    }

    #[test]
    fn each_listed_handler_is_found_at_its_place_and_no_other_is() {
        for count in [0, 1, 2, 3, 100, MOST_HANDLERS] {
            let (bytes, all) = listing(count);
            let names = Names::of(bytes).expect("it was listed");
            for (place, named) in (0..).zip(&all) {
                assert_eq!(names.find(named.key), Some(place));
            }
            assert_eq!((names.find(u64::MAX), names.find(3 << 60)), (None, None));
        }
    }

    #[test]
    fn a_missing_handler_is_reported_with_the_handlers_that_there_are() {
        let names = Names::of(listing(2).0).expect("it was listed");
        let types = "a call of u64 that answers u64".to_owned();
        assert_eq!(names.missing("sub"), Missing::OtherTypes(types));
        let all = vec!["add".to_owned(), "sub".to_owned()];
        assert_eq!(names.missing("divide"), Missing::Unknown(all));
    }

    #[test]
    fn a_listing_that_is_cut_anywhere_is_refused() {
        let (bytes, _) = listing(1);
        for len in 1..bytes.len() {
            assert!(Names::of(bytes[..len].to_vec()).is_none(), "{len} bytes");
        }
        let mut beyond = Vec::new();
        let named = Named { name: "add", key: 1 };
        list(&mut beyond, named, MOST_HANDLERS as u16, "");
        assert!(Names::of(beyond).is_none());
    }
}
