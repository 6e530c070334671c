//! The names of handlers: which place each has in a peer's table.
//!
//! An endpoint lists its named handlers in bytes, which peers ask for in pieces when they first
//! call one of them. Each entry of a listing is, with the lowest byte first:
//!
//! | bytes | what |
//! |---|---|
//! | 8 | the number that stands for the name and the types |
//! | 2 | the handler's place |
//! | 1, and so many | the name |
//! | 2, and so many | the types, for errors |

use crate::kinds::{LONGEST_NAME, Named};
use crate::wire::MOST_HANDLERS;

/// The most bytes that are listed of the text of types.
const LONGEST_TYPES: usize = 1000;

/// The longest listing that there can be, and that an endpoint takes of a peer: 5 MB.
pub(crate) const LONGEST_LISTING: usize = MOST_HANDLERS * (13 + LONGEST_NAME + LONGEST_TYPES);

/// The named handlers of an endpoint, by the numbers that stand for their names and types.
pub(crate) struct Names {
    /// As many as a power of two, of which half are free at least. An entry is at the place that
    /// its number says, or behind it.
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
    /// The peer has none of that name, but these.
    Unknown(Vec<String>),
    /// The peer's has other types, told here.
    OtherTypes(String),
}

impl Names {
    /// The handlers that a peer has listed, or `None` if the bytes are no listing.
    pub fn of(listing: Vec<u8>) -> Option<Self> {
        let (mut rest, mut entries) = (&listing[..], Vec::new());
        while !rest.is_empty() {
            let Entry { key, place, .. } = Entry::take(&mut rest)?;
            // More than there can be would take long to put into a table.
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

    /// Whether this is what a peer has listed.
    pub fn is(&self, listing: &[u8]) -> bool {
        *self.listing == *listing
    }

    /// The place of the handler whose name and types that number stands for.
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

    /// Why a handler is not found that has this name here.
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
    fn each_handler_that_was_listed_is_found_at_its_place_and_no_other_is() {
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
    fn what_is_missing_is_told_with_what_there_is_instead() {
        let names = Names::of(listing(2).0).expect("it was listed");
        let types = "a call of u64 that answers u64".to_owned();
        assert_eq!(names.missing("sub"), Missing::OtherTypes(types));
        let all = vec!["add".to_owned(), "sub".to_owned()];
        assert_eq!(names.missing("divide"), Missing::Unknown(all));
    }

    #[test]
    fn bytes_that_are_cut_anywhere_are_no_listing() {
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
