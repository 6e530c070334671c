//! What is in the messages, and what may come back.

use doorbell_verbs::Buf;

/// One side's messages: each different in every byte from the one before, and from the other side's.
pub struct Content {
    side: u8,
    size: usize,
    /// What was sent last.
    last: Option<u64>,
}

impl Content {
    /// Of the side that is told where the other waits, or of the one that waits.
    pub fn new(asks: bool, size: usize) -> Self {
        Self { side: u8::from(asks), size, last: None }
    }

    /// Fills a buffer with a message.
    pub fn fill(&mut self, buf: &mut Buf, number: u64) {
        for (at, place) in buf.capacity_mut()[..self.size].iter_mut().enumerate() {
            *place = byte(self.side, number, at);
        }
        buf.set_len(self.size).expect("it was filled");
        self.last = Some(number);
    }

    /// Why a message that came is not what it ought to be: what was sent last, for rdma-core's
    /// pingpongs receive where they send from; or what another of these sends; or, before anything was
    /// sent, a buffer of one byte's copies.
    pub fn amiss(&self, found: &[u8], number: u64) -> Option<String> {
        let is = |side: u8, number: u64| {
            (0..self.size).all(|at| found.get(at) == Some(&byte(side, number, at)))
        };
        let echo = self.last.is_some_and(|last| is(self.side, last));
        let fresh = self.last.is_none() && found.iter().all(|byte| Some(byte) == found.first());
        if echo || fresh || is(1 - self.side, number) {
            return None;
        }
        let expected = |at| byte(self.side, self.last.unwrap_or(number), at);
        let wrong = (0..self.size).find(|&at| found[at] != expected(at)).unwrap_or(0);
        Some(format!(
            "message {number} is neither what was sent last nor what another of these sends: byte \
             {wrong} is {:#04x}, and was {:#04x}",
            found[wrong],
            expected(wrong)
        ))
    }
}

fn byte(side: u8, number: u64, at: usize) -> u8 {
    // Pages, packets and messages all differ.
    let place = (at as u64).wrapping_mul(31).wrapping_add((at as u64) >> 8);
    (place.wrapping_add(number * 7) as u8) ^ (side << 7)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_back_or_of_the_other_side_is_taken_and_nothing_else() {
        let (mut asks, mut waits) = (Content::new(true, 600), Content::new(false, 600));
        let [mut sent, mut other] = [(); 2].map(|()| Buf::with_capacity(600));
        assert_eq!(asks.amiss(&[0x7b; 600], 0), None, "what a pingpong sends first");
        asks.fill(&mut sent, 0);
        waits.fill(&mut other, 0);
        assert_eq!(asks.amiss(&sent, 0), None);
        assert_eq!(asks.amiss(&other, 0), None);
        assert!(asks.amiss(&other, 1).is_some(), "that of a round before");
        assert!(asks.amiss(&[0x7b; 600], 1).is_some());
        for at in 0..600 {
            let mut damaged = sent.to_vec();
            damaged[at] ^= 1;
            assert!(asks.amiss(&damaged, 0).unwrap().contains(&format!("byte {at} is")), "{at}");
        }
    }
}
