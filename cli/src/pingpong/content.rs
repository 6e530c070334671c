//! What is in the messages, and what may come back.

use doorbell_verbs::Buf;

/// The messages of one side. Each differs in every byte from the message before, and from the other
/// side's messages.
pub struct Content {
    side: u8,
    size: usize,
    /// The number of the message that was sent last.
    last: Option<u64>,
    peer: Peer,
}

/// The kind of program at the other side, as far as its messages have shown it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Peer {
    Unknown,
    /// A program that sends back what it has received. The pingpongs of rdma-core do, because they
    /// receive into the buffer that they send from.
    Echoes,
    /// A program that sends messages of its own: another `doorbell pingpong`.
    Ours,
}

/// The byte that fills the buffers of rdma-core's pingpongs at first, when they begin.
const FRESH: u8 = 0x7b;

impl Content {
    /// Of the side that is told where the other waits, or of the one that waits.
    pub fn new(asks: bool, size: usize) -> Self {
        Self { side: u8::from(asks), size, last: None, peer: Peer::Unknown }
    }

    /// Fills a buffer with a message.
    pub fn fill(&mut self, buf: &mut Buf, number: u64) {
        for (at, place) in buf.capacity_mut()[..self.size].iter_mut().enumerate() {
            *place = byte(self.side, number, at);
        }
        buf.set_len(self.size).expect("it was filled");
        self.last = Some(number);
    }

    /// Why a message of the right length is not what it ought to be.
    pub fn amiss(&mut self, found: &[u8], number: u64) -> Option<String> {
        let echo = self.last.map(|last| (Peer::Echoes, (self.side, last)));
        let own = Some((Peer::Ours, (1 - self.side, number)));
        let mut why = None;
        for (peer, (side, of)) in [own, echo].into_iter().flatten() {
            if self.peer != Peer::Unknown && self.peer != peer {
                continue;
            }
            let Some(at) = self.first_wrong(found, side, of) else {
                self.peer = peer;
                return None;
            };
            why = Some((at, byte(side, of, at)));
        }
        if self.last.is_none() && found.iter().all(|&byte| byte == FRESH) {
            self.peer = Peer::Echoes;
            return None;
        }
        why.map(|(at, expected)| {
            format!(
                "message {number} is neither what was sent last nor what another of these sends: \
                 byte {at} is {:#04x}, and should be {expected:#04x}",
                found[at]
            )
        })
    }

    /// Where a message differs from one of a side's.
    fn first_wrong(&self, found: &[u8], side: u8, number: u64) -> Option<usize> {
        (0..self.size).find(|&at| found[at] != byte(side, number, at))
    }
}

/// No two places of a message have the same neighbours: what is there in the wrong place shows.
fn byte(side: u8, number: u64, at: usize) -> u8 {
    let place = (at as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56;
    (place.wrapping_add(number * 7) as u8) ^ (side << 7)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: usize = 300_000;

    fn filled(content: &mut Content, number: u64) -> Vec<u8> {
        let mut buf = Buf::with_capacity(SIZE);
        content.fill(&mut buf, number);
        buf.to_vec()
    }

    #[test]
    fn what_comes_back_is_taken_and_nothing_else() {
        let mut asks = Content::new(true, SIZE);
        let sent = filled(&mut asks, 0);
        assert_eq!(asks.amiss(&sent, 0), None);
        assert!(asks.amiss(&[FRESH; SIZE], 0).is_some(), "it has sent something");
        for at in [0, 1, 4095, 65_536, SIZE - 1] {
            let mut damaged = sent.clone();
            damaged[at] ^= 1;
            assert!(asks.amiss(&damaged, 0).unwrap().contains(&format!("byte {at} is")), "{at}");
        }
        for distance in [1, 64, 1024, 4096, 65_536] {
            let mut moved = sent.clone();
            moved.rotate_left(distance);
            assert!(asks.amiss(&moved, 0).is_some(), "{distance}");
        }
        let next = filled(&mut asks, 1);
        assert!(asks.amiss(&sent, 1).is_some(), "that of a round before");
        let other = filled(&mut Content::new(false, SIZE), 1);
        assert!(asks.amiss(&other, 1).is_some(), "it sends back what it gets");
        assert_eq!(asks.amiss(&next, 1), None);
    }

    #[test]
    fn of_another_of_these_its_own_are_taken_and_nothing_else() {
        let (mut asks, mut waits) = (Content::new(true, SIZE), Content::new(false, SIZE));
        let asked = filled(&mut asks, 0);
        assert_eq!(waits.amiss(&asked, 0), None);
        let answer = filled(&mut waits, 0);
        assert_eq!(asks.amiss(&answer, 0), None);
        let own = filled(&mut asks, 1);
        assert!(asks.amiss(&own, 1).is_some(), "its own came back");
        assert!(asks.amiss(&answer, 1).is_some(), "that of a round before");
    }

    #[test]
    fn who_waits_is_first_sent_a_fresh_buffer_by_a_pingpong() {
        let mut waits = Content::new(false, SIZE);
        assert!(waits.amiss(&[0; SIZE], 0).is_some());
        assert_eq!(waits.amiss(&[FRESH; SIZE], 0), None);
        let sent = filled(&mut waits, 0);
        assert_eq!(waits.amiss(&sent, 1), None);
        assert!(waits.amiss(&[FRESH; SIZE], 1).is_some());
    }
}
