//! Selective signalling: which sends report their completion.
//!
//! Most sends of few bytes are unsignalled, for a completion costs as much as the send. But a
//! sender that finds the queue full must hear of room again, so a full queue must hold a signalled
//! send. Every few sends the room in the queue is looked at, and the next send is signalled if
//! there is little. Sends behind the last look that found ample room are more than fit the queue
//! together.

/// Selective signalling for one send queue.
pub(crate) struct SelectiveSignalling {
    /// The sends since the room was last looked at.
    unsignalled: u16,
    /// The number of sends after which the room is looked at.
    every: u16,
    /// The room from which on no send needs to be signalled.
    ample: u16,
}

impl SelectiveSignalling {
    /// Creates the signalling for a send queue of this depth.
    pub fn new(depth: usize) -> Self {
        let most = u16::MAX.into();
        let (every, ample) = ((depth / 4).clamp(1, 16) as u16, (depth / 2).clamp(2, most) as u16);
        debug_assert!(every < ample);
        Self { unsignalled: 0, every, ample }
    }

    /// Counts a send, and returns whether it is to be signalled. `room` says how many sends the
    /// queue still takes.
    #[inline]
    pub fn signals_next(&mut self, room: impl FnOnce() -> usize) -> bool {
        self.unsignalled += 1;
        if self.unsignalled < self.every {
            return false;
        }
        self.unsignalled = 0;
        room() < self.ample.into()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;

    #[test]
    fn a_full_queue_holds_a_signalled_send() {
        for depth in 1..=128 {
            let (mut signalling, mut queue) = (SelectiveSignalling::new(depth), VecDeque::new());
            let mut state = depth as u64;
            for _ in 0..20_000 {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                // Long runs of sends, and of completions.
                let (sends, count) = (state >> 63 == 0, (state >> 40) as usize % (depth + 3));
                for _ in 0..count {
                    if !sends {
                        queue.pop_front();
                    } else if queue.len() < depth {
                        let room = depth - queue.len();
                        queue.push_back(signalling.signals_next(|| room));
                    }
                    let full = queue.len() == depth;
                    assert!(!full || queue.contains(&true), "of {depth}");
                }
            }
        }
    }

    #[test]
    fn a_lone_send_is_unsignalled() {
        let mut signalling = SelectiveSignalling::new(8);
        assert!((0..100).all(|_| !signalling.signals_next(|| 8)));
    }
}
