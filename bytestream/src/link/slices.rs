//! The slices of a vectored write, read as one sequence of bytes.

use std::io::IoSlice;

/// A sequence of bytes in several slices, of which the first bytes may be taken off.
pub(crate) struct Slices<'s, 'b> {
    slices: &'s [IoSlice<'b>],
    /// How many bytes of the first slice were taken off.
    at: usize,
    /// The number of bytes that are left.
    len: usize,
}

impl<'s, 'b> Slices<'s, 'b> {
    pub fn new(slices: &'s [IoSlice<'b>]) -> Self {
        let len = slices.iter().fold(0, |all: usize, slice| all.saturating_add(slice.len()));
        Self { slices, at: 0, len }
    }

    /// Returns the number of bytes that are left.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Copies the next bytes into `to`, without taking them off. At least `to.len()` bytes must be
    /// left.
    pub fn copy_to(&self, mut to: &mut [u8]) {
        let mut from = self.at;
        for slice in self.slices {
            let part = &slice[from..];
            let len = part.len().min(to.len());
            let (here, behind) = to.split_at_mut(len);
            here.copy_from_slice(&part[..len]);
            (to, from) = (behind, 0);
            if to.is_empty() {
                return;
            }
        }
        debug_assert!(to.is_empty(), "more bytes than there are");
    }

    /// Takes the next `count` bytes off. At least `count` bytes must be left.
    pub fn advance(&mut self, count: usize) {
        self.len -= count;
        self.at += count;
        while let [first, rest @ ..] = self.slices
            && self.at >= first.len()
        {
            self.at -= first.len();
            self.slices = rest;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_several_slices_are_taken_in_pieces_of_every_length() {
        let parts = [&b""[..], b"a", b"", b"bcd", b"ef", b""];
        let all: Vec<_> = parts.iter().map(|part| IoSlice::new(part)).collect();
        for length in 1..=6 {
            let (mut slices, mut found) = (Slices::new(&all), Vec::new());
            while slices.len() > 0 {
                let mut piece = vec![0; length.min(slices.len())];
                slices.copy_to(&mut piece);
                slices.advance(piece.len());
                found.extend(piece);
            }
            assert_eq!(found, b"abcdef");
        }
    }
}
