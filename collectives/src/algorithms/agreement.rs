//! Agreements of the members: whether all of them pass the same numbers.

use bytes::Bytes;

use super::folds;
use crate::communicator::Rounds;
use crate::elements::Whole;

/// Compares numbers that all members pass. Returns the position of the first number that is not
/// the same at all members, or `None` if all are; lists of different lengths differ where the
/// shortest ends.
pub async fn agree<R: Rounds>(rounds: &R, own: Extremes) -> Result<Option<usize>, R::Failure> {
    let mut combine = Whole(|left: &mut Vec<u8>, right: &[u8]| {
        let both = Extremes::from_bytes(left).with(Extremes::from_bytes(right));
        *left = both.to_bytes().into();
    });
    let all = folds::all_reduce(rounds, own.to_bytes(), &mut combine).await?;
    Ok(Extremes::from_bytes(&all).differ())
}

/// The least and the greatest that any of some members has passed, of each number that all of them
/// have passed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Extremes {
    numbers: Vec<[u64; 2]>,
    /// True if the members have not all passed equally many numbers.
    uneven: bool,
}

impl Extremes {
    /// The extremes of the numbers of one member.
    pub fn of(numbers: &[u64]) -> Self {
        Self { numbers: numbers.iter().map(|&number| [number; 2]).collect(), uneven: false }
    }

    /// The extremes of two sets of members together.
    fn with(self, other: Self) -> Self {
        let uneven = self.uneven || other.uneven || self.numbers.len() != other.numbers.len();
        let both = self.numbers.into_iter().zip(other.numbers);
        let numbers = both
            .map(|([least, greatest], [low, high])| [least.min(low), greatest.max(high)])
            .collect();
        Self { numbers, uneven }
    }

    /// The position of the first number that differs.
    fn differ(&self) -> Option<usize> {
        let differs = self.numbers.iter().position(|[least, greatest]| least != greatest);
        differs.or_else(|| self.uneven.then_some(self.numbers.len()))
    }

    fn to_bytes(&self) -> Bytes {
        let numbers = self.numbers.as_flattened().iter().flat_map(|number| number.to_be_bytes());
        [u8::from(self.uneven)].into_iter().chain(numbers).collect()
    }

    /// Decodes the least and greatest numbers that a member sent. Bytes that no member of this
    /// version has sent count as numbers that differ.
    fn from_bytes(bytes: &[u8]) -> Self {
        let different = Self { numbers: Vec::new(), uneven: true };
        let Some((&uneven, rest)) = bytes.split_first() else { return different };
        let (words, []) = rest.as_chunks() else { return different };
        let words: Vec<_> = words.iter().map(|word| u64::from_be_bytes(*word)).collect();
        let (pairs, []) = words.as_chunks() else { return different };
        Self { numbers: pairs.to_vec(), uneven: uneven != 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agreed(all: &[&[u64]]) -> Option<usize> {
        let all = all.iter().map(|numbers| Extremes::of(numbers).to_bytes());
        let folded = all.reduce(|left, right| {
            Extremes::from_bytes(&left).with(Extremes::from_bytes(&right)).to_bytes()
        });
        Extremes::from_bytes(&folded.expect("a member")).differ()
    }

    #[test]
    fn an_agreement_names_the_first_number_that_differs() {
        assert_eq!(agreed(&[&[], &[], &[]]), None);
        assert_eq!(agreed(&[&[1, u64::MAX], &[1, u64::MAX], &[1, u64::MAX]]), None);
        assert_eq!(agreed(&[&[1, 2, 3], &[1, 2, 4], &[1, 2, 3]]), Some(2));
        assert_eq!(agreed(&[&[0, 2], &[1, 3]]), Some(0));
    }

    #[test]
    fn lists_of_different_lengths_differ_where_the_shortest_ends() {
        assert_eq!(agreed(&[&[1, 2, 3], &[1], &[1, 2, 3]]), Some(1));
        assert_eq!(agreed(&[&[1, 2], &[1, 2], &[]]), Some(0));
        assert_eq!(agreed(&[&[2, 2], &[1, 2, 3]]), Some(0));
    }

    #[test]
    fn bytes_that_are_no_numbers_differ_from_all_numbers() {
        for wrong in [&[][..], &[0; 2], &[0; 8], &[0; 9], &[0; 18]] {
            let both = Extremes::of(&[0]).with(Extremes::from_bytes(wrong));
            assert_eq!(both.differ(), Some(0), "{wrong:?}");
        }
    }
}
