//! Requests that were posted, and how many of them a peer's piggybacked acknowledgement covers.

use crate::wire::Taken;

/// The counts of requests posted to a queue: of all, and of those that take a receive, which the
/// peer counts.
#[derive(Default)]
pub(crate) struct Posted {
    all: u32,
    counted: Taken,
    /// The count when a request was last posted that takes no receive.
    uncounted_at: Taken,
}

impl Posted {
    /// Counts a request that is posted.
    #[inline]
    pub fn count(&mut self, takes_receive: bool) {
        self.all = self.all.wrapping_add(1);
        match takes_receive {
            true => self.counted = Taken::of(self.counted.0 + 1),
            false => self.uncounted_at = self.counted,
        }
    }

    /// Returns how many of all requests have arrived, if the peer has taken `taken` of those that
    /// it counts. The answer is unknown where a request that takes no receive is behind the last of
    /// them, and for a while whenever the count comes round.
    pub fn until(&self, taken: Taken) -> Option<u32> {
        let left = self.counted.beyond(taken);
        (left < self.counted.beyond(self.uncounted_at)).then(|| self.all.wrapping_sub(left.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_messages_that_a_peer_took_tell_how_many_requests_have_arrived() {
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
