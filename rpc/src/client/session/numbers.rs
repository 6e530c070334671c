//! The numbers of calls, by which a server knows which calls have begun.

use std::sync::Mutex;

use doorbell_verbs::floor::locked;

/// The numbers of a channel's calls. They count up in the order in which calls are sent, since a
/// server takes a call to have begun that thousands of later ones have overtaken.
#[derive(Default, Debug)]
pub struct Numbers {
    next: Mutex<u64>,
}

impl Numbers {
    /// Sends a call by the function `sends`, which gets the call's number: `before` if the call was
    /// sent with that number before. Otherwise a number is drawn, and no other call draws one until
    /// `sends` returns.
    pub fn send<R>(&self, before: Option<u64>, sends: impl FnOnce(u64) -> R) -> R {
        if let Some(number) = before {
            return sends(number);
        }
        let mut next = locked(&self.next);
        let number = *next;
        *next += 1;
        sends(number)
    }

    /// Sends a call by the function `sends`, which gets the call's number and returns whether it
    /// was sent. A number by which nothing was sent is the next call's.
    pub fn try_send(&self, sends: impl FnOnce(u64) -> bool) -> Option<u64> {
        let mut next = locked(&self.next);
        let number = *next;
        let sent = sends(number);
        *next += u64::from(sent);
        sent.then_some(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_that_is_sent_again_keeps_its_number_and_another_gets_the_next() {
        let numbers = Numbers::default();
        assert_eq!(numbers.send(None, |number| number), 0);
        assert_eq!(numbers.send(None, |number| number), 1);
        assert_eq!(numbers.send(Some(0), |number| number), 0);
        assert_eq!(numbers.try_send(|_| false), None);
        assert_eq!(numbers.try_send(|_| true), Some(2));
        assert_eq!(numbers.send(None, |number| number), 3);
    }
}
