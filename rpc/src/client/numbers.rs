//! The numbers of calls, by which a server knows which calls have begun.

use std::sync::{Mutex, PoisonError};

/// The number of one call, once it was drawn.
#[derive(Clone, Copy, Default, Debug)]
pub struct Number(Option<u64>);

/// The numbers of a channel's calls. They count up in the order in which calls are sent, since a
/// server takes a call to have begun that thousands of later ones have overtaken.
#[derive(Default, Debug)]
pub struct Numbers {
    next: Mutex<u64>,
}

impl Numbers {
    /// Sends a call by the function `sends`, which gets the call's number. If the call has none
    /// yet, a number is drawn, and no other call draws one until `sends` returns.
    pub fn send<R>(&self, number: &mut Number, sends: impl FnOnce(u64) -> R) -> R {
        if let Number(Some(number)) = *number {
            return sends(number);
        }
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        let drawn = *next;
        *next += 1;
        *number = Number(Some(drawn));
        sends(drawn)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_that_is_sent_again_keeps_its_number_and_another_gets_the_next() {
        let (numbers, mut one, mut other) =
            (Numbers::default(), Number::default(), Number::default());
        assert_eq!(numbers.send(&mut one, |number| number), 0);
        assert_eq!(numbers.send(&mut other, |number| number), 1);
        assert_eq!(numbers.send(&mut one, |number| number), 0);
    }
}
