//! Requests that were posted, and how many of them a peer's piggybacked acknowledgement covers.

use crate::wire::Taken;

/// What was posted to a queue: all requests, and those that take a receive, which the peer counts.
#[derive(Default)]
pub(crate) struct Posted {
    all: u32,
    counted: Taken,
    /// How many were counted when one was last posted that is not.
    uncounted_at: Taken,
}

impl Posted {
    #[inline]
    pub fn count(&mut self, takes_receive: bool) {
        self.all = self.all.wrapping_add(1);
        match takes_receive {
            true => self.counted = Taken::of(self.counted.0 + 1),
            false => self.uncounted_at = self.counted,
        }
    }

    /// How many of all requests came, if the peer has taken so many of those that it counts. It is
    /// not known where others are behind the last of them; nor, for a while, whenever as many were
    /// counted as a count can say.
    pub fn until(&self, taken: Taken) -> Option<u32> {
        let left = self.counted.beyond(taken);
        (left < self.counted.beyond(self.uncounted_at)).then(|| self.all.wrapping_sub(left.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_peer_took_says_how_many_of_all_requests_came() {
        let (mut posted, mut after) = (Posted::default(), vec![0]);
        for number in 0..10_000_u32 {
            let takes = number % 7 != 3 && number % 1000 < 900;
            posted.count(takes);
            if takes {
                after.push(number + 1);
            }
            let taken = after.len() - 1;
            for late in 0..taken.min(300) {
                let came = posted.until(Taken::of((taken - late) as u16));
                let known = (after[taken - late]..=number)
                    .all(|other| after.binary_search(&(other + 1)).is_ok());
                assert_eq!(came, known.then_some(after[taken - late]), "{late} late of {number}");
            }
        }
    }
}
