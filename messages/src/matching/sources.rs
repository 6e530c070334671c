//! Tables of senders by their numbers.

use super::Source;

/// A table by the numbers of senders. The lower half of a number is a place in the table, which
/// another sender may have later; the upper half tells the two apart.
#[derive(Debug)]
pub struct Sources<T> {
    places: Vec<Option<(Source, T)>>,
    /// The places that nobody has any more.
    vacant: Vec<u32>,
    /// How many numbers were drawn.
    drawn: u32,
}

impl<T> Default for Sources<T> {
    fn default() -> Self {
        Self { places: Vec::new(), vacant: Vec::new(), drawn: 0 }
    }
}

fn place_of(source: Source) -> usize {
    (source & u64::from(u32::MAX)) as usize
}

impl<T> Sources<T> {
    /// Draws a number that is not zero, with a place that nobody has. The number is to be
    /// [put](Self::insert) in the table before the next is drawn.
    pub fn draw(&mut self) -> Source {
        self.drawn = self.drawn.wrapping_add(1).max(1);
        let place = self.vacant.pop().unwrap_or(self.places.len() as u32);
        u64::from(self.drawn) << 32 | u64::from(place)
    }

    /// Puts a sender in the table.
    pub fn insert(&mut self, source: Source, value: T) {
        let place = place_of(source);
        if self.places.len() <= place {
            self.places.resize_with(place + 1, || None);
        }
        self.places[place] = Some((source, value));
    }

    #[inline]
    pub fn get(&self, source: Source) -> Option<&T> {
        match self.places.get(place_of(source))? {
            Some((of, value)) if *of == source => Some(value),
            _ => None,
        }
    }

    #[inline]
    pub fn get_mut(&mut self, source: Source) -> Option<&mut T> {
        match self.places.get_mut(place_of(source))? {
            Some((of, value)) if *of == source => Some(value),
            _ => None,
        }
    }

    /// Returns whether the sender is in the table.
    pub fn contains(&self, source: Source) -> bool {
        self.get(source).is_some()
    }

    /// Takes a sender out of the table, whose place another may have from now on.
    pub fn remove(&mut self, source: Source) -> Option<T> {
        let place = place_of(source);
        let (_, value) = self.places.get_mut(place)?.take_if(|(of, _)| *of == source)?;
        // A table in which no numbers are drawn follows another's.
        if self.drawn > 0 {
            self.vacant.push(place as u32);
        }
        Some(value)
    }

    pub fn iter(&self) -> impl Iterator<Item = (Source, &T)> {
        self.places.iter().flatten().map(|(source, value)| (*source, value))
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = (Source, &mut T)> {
        self.places.iter_mut().flatten().map(|(source, value)| (*source, value))
    }

    pub fn values(&self) -> impl Iterator<Item = &T> {
        self.iter().map(|(_, value)| value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // A message of a sender that has gone may wait while another sender has its place.
    #[test]
    fn a_sender_that_has_gone_is_not_found_by_its_number_when_another_has_its_place() {
        let mut all = Sources::default();
        let first = all.draw();
        all.insert(first, "first");
        assert_eq!(all.remove(first), Some("first"));
        let second = all.draw();
        all.insert(second, "second");
        assert_eq!(place_of(first), place_of(second), "the place is used again");
        assert_eq!((all.get(first), all.get(second)), (None, Some(&"second")));
        assert_eq!(all.remove(first), None);
        assert!(all.contains(second) && all.iter().count() == 1);
    }
}
