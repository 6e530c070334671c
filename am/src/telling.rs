//! Which sends are told of when they are complete.
//!
//! Most sends of few bytes are not, for to tell costs as much as to send. But who has no room must
//! hear of room again: so whenever the queue is full, one of the requests in it is told of. A send
//! is, if so many were not since it was last asked, and there was little room then. Those behind
//! the last that found ample room are more than that in a full queue.

/// Says which are.
pub(crate) struct Telling {
    /// Sends since it was last asked whether one is to be told of.
    untold: u16,
    /// After how many that is asked.
    every: u16,
    /// One is, unless there is so much room.
    ample: u16,
}

impl Telling {
    /// For a queue of that depth.
    pub fn new(depth: usize) -> Self {
        let most = u16::MAX.into();
        let (every, ample) = ((depth / 4).clamp(1, 16) as u16, (depth / 2).clamp(2, most) as u16);
        debug_assert!(every < ample);
        Self { untold: 0, every, ample }
    }

    /// Whether the next send is told of, where there is so much room.
    #[inline]
    pub fn tells(&mut self, room: impl FnOnce() -> usize) -> bool {
        self.untold += 1;
        if self.untold < self.every {
            return false;
        }
        self.untold = 0;
        room() < self.ample.into()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;

    #[test]
    fn a_full_queue_tells_of_one_of_its_requests() {
        for depth in 1..=128 {
            let (mut telling, mut queue) = (Telling::new(depth), VecDeque::new());
            let mut state = depth as u64;
            for _ in 0..20_000 {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                // Long runs of the one and of the other.
                let (sends, count) = (state >> 63 == 0, (state >> 40) as usize % (depth + 3));
                for _ in 0..count {
                    if !sends {
                        queue.pop_front();
                    } else if queue.len() < depth {
                        let room = depth - queue.len();
                        queue.push_back(telling.tells(|| room));
                    }
                    let full = queue.len() == depth;
                    assert!(!full || queue.contains(&true), "of {depth}");
                }
            }
        }
    }

    #[test]
    fn a_send_that_has_the_queue_for_itself_is_not_told_of() {
        let mut telling = Telling::new(8);
        assert!((0..100).all(|_| !telling.tells(|| 8)));
    }
}
