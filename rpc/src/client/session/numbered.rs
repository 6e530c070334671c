//! A table by numbers that count up, as those of calls do.

use std::collections::HashMap;

/// Values by their numbers. Most are found at a place of their own, without a search: numbers that
/// count up have places one behind the other, and a value that stays for long has others pass by.
///
/// No number comes twice, so what is asked for by the number of a value that has gone is not found,
/// whoever has its place by now.
pub struct Numbered<T> {
    /// A power of two of places, or none yet. A number's place is its lowest bits.
    places: Vec<Option<(u64, T)>>,
    /// The values whose places others had.
    beyond: HashMap<u64, T>,
    len: usize,
}

/// The fewest places of a table that has any.
const FEWEST: usize = 16;
/// The most places of a table. Of more values, some share places with others, and are searched for.
const MOST: usize = 4096;

impl<T> Default for Numbered<T> {
    fn default() -> Self {
        Self { places: Vec::new(), beyond: HashMap::new(), len: 0 }
    }
}

impl<T> Numbered<T> {
    pub fn len(&self) -> usize {
        self.len
    }

    fn place(&mut self, number: u64) -> Option<&mut Option<(u64, T)>> {
        let mask = self.places.len().wrapping_sub(1);
        self.places.get_mut(number as usize & mask)
    }

    pub fn get_mut(&mut self, number: u64) -> Option<&mut T> {
        let beyond = !self.beyond.is_empty();
        let mask = self.places.len().wrapping_sub(1);
        match self.places.get_mut(number as usize & mask) {
            Some(Some((there, value))) if *there == number => Some(value),
            _ if beyond => self.beyond.get_mut(&number),
            _ => None,
        }
    }

    /// Puts a value into the table, in place of another of the same number if there is one.
    pub fn insert(&mut self, number: u64, value: T) {
        drop(self.remove(number));
        if 2 * self.len >= self.places.len() && self.places.len() < MOST {
            self.grow();
        }
        self.len += 1;
        self.put(number, value);
    }

    fn put(&mut self, number: u64, value: T) {
        match self.place(number) {
            Some(place @ None) => *place = Some((number, value)),
            _ => drop(self.beyond.insert(number, value)),
        }
    }

    pub fn remove(&mut self, number: u64) -> Option<T> {
        let found = self.place(number);
        let removed = match found.and_then(|place| place.take_if(|(there, _)| *there == number)) {
            Some((_, value)) => Some(value),
            None if self.beyond.is_empty() => None,
            None => self.beyond.remove(&number),
        };
        self.len -= usize::from(removed.is_some());
        removed
    }

    pub fn values(&self) -> impl Iterator<Item = &T> {
        self.places.iter().flatten().map(|(_, value)| value).chain(self.beyond.values())
    }

    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        let placed = self.places.iter_mut().flatten().map(|(_, value)| value);
        placed.chain(self.beyond.values_mut())
    }

    #[cold]
    fn grow(&mut self) {
        let places = (2 * self.places.len()).max(FEWEST);
        let more = std::iter::repeat_with(|| None).take(places).collect();
        let before = std::mem::replace(&mut self.places, more);
        let beyond = std::mem::take(&mut self.beyond);
        for (number, value) in before.into_iter().flatten().chain(beyond) {
            self.put(number, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_has_gone_is_not_found_at_the_place_that_another_has_taken() {
        let mut table = Numbered::default();
        table.insert(3, "gone");
        assert_eq!(table.remove(3), Some("gone"));
        let next = 3 + FEWEST as u64;
        table.insert(next, "next");
        assert_eq!(table.get_mut(3), None);
        assert_eq!(table.remove(3), None);
        assert_eq!(table.get_mut(next), Some(&mut "next"));
        assert_eq!(table.len(), 1);
    }

    #[test]
    fn values_that_stay_are_found_however_many_pass_by() {
        let mut table = Numbered::default();
        (0..20).for_each(|stays| table.insert(stays, stays));
        for number in 20..3 * MOST as u64 {
            table.insert(number, number);
            assert_eq!(table.get_mut(number % 20), Some(&mut (number % 20)));
            assert_eq!(table.remove(number), Some(number));
        }
        assert_eq!((table.len(), table.values().count(), table.values_mut().count()), (20, 20, 20));
        assert!(table.places.len() <= 64, "it grows with what is in it");
        (0..20).for_each(|stays| assert_eq!(table.remove(stays), Some(stays)));
        assert_eq!((table.len(), table.values().count()), (0, 0));
    }

    #[test]
    fn a_full_table_takes_more_values_than_it_has_places() {
        let mut table = Numbered::default();
        let all = 0..2 * MOST as u64;
        all.clone().for_each(|number| table.insert(number, number));
        table.insert(7, 70);
        assert_eq!((table.len(), table.places.len()), (2 * MOST, MOST));
        assert_eq!(table.remove(7), Some(70));
        all.filter(|number| *number != 7).for_each(|number| {
            assert_eq!(table.remove(number), Some(number));
        });
        assert_eq!(table.len(), 0);
    }
}
