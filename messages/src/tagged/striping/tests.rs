//! Messages over connections that end at any moment, beside what must come.

use std::collections::VecDeque;

use super::{Ordered, Sent};

/// A small generator of numbers, by the method of xorshift.
struct Luck(u64);

impl Luck {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound as u64) as usize
    }
}

#[test]
fn each_message_comes_once_and_in_order_though_connections_end() {
    for seed in 1..=300_u64 {
        let mut luck = Luck(0x9E37_79B9_7F4A_7C15_u64.wrapping_mul(seed));
        let (mut sent, mut ordered) = (Sent::default(), Ordered::default());
        let mut lines: Vec<Option<VecDeque<(u64, u64)>>> = vec![Some(VecDeque::new()); 4];
        let (mut submitted, mut received, mut alive) = (0, Vec::new(), 4);
        while submitted < 500 || received.len() < 500 {
            let line = luck.below(4);
            let Some(queue) = &mut lines[line] else { continue };
            match luck.below(100) {
                0 if alive > 1 => {
                    // A part of what is under way has come before the end, or has not.
                    lines[line] = None;
                    alive -= 1;
                    sent.ended(line);
                }
                1..50 => match sent.again(line) {
                    Some(again) => queue.push_back(again),
                    None if submitted < 500 => {
                        queue.push_back((sent.keep(line, submitted), submitted));
                        submitted += 1;
                    }
                    None => {}
                },
                _ => {
                    let Some((sequence, message)) = queue.pop_front() else { continue };
                    assert!(ordered.comes(sequence, (8, message), |message| message, || 500 * 8));
                    received.extend(std::iter::from_fn(|| ordered.next()));
                    if let Some(next) = ordered.acknowledgement() {
                        assert!(sent.acknowledged(next), "no more was acknowledged than was sent");
                    }
                }
            }
        }
        assert!(received.iter().copied().eq(0..500), "seed {seed}: {received:?}");
        assert!(sent.kept() < 64, "seed {seed}: acknowledged messages are not kept");
    }
}

#[test]
fn messages_far_ahead_and_false_acknowledgements_are_refused() {
    let mut ordered = Ordered::default();
    let mut comes = |sequence: &u64| ordered.comes(*sequence, (0, ()), |()| (), || 0);
    let taken = (1..1_000_000).take_while(&mut comes).count();
    assert!(taken < 100_000, "{taken} were taken");
    assert!(ordered.next().is_none());
    let mut sent = Sent::default();
    sent.keep(0, ());
    assert!(!sent.acknowledged(2) && sent.acknowledged(1));
}

#[test]
fn bytes_that_wait_for_an_earlier_message_are_bounded() {
    let mut ordered = Ordered::default();
    let mut comes = |sequence, bytes| ordered.comes(sequence, (bytes, ()), |()| (), || 1000);
    assert!(comes(1, 600) && comes(2, 400));
    assert!(comes(2, 400), "a message that comes again takes no more");
    assert!(!comes(3, 1));
    assert!(comes(0, 5000), "the next message in order does not wait");
    assert!(comes(4, 1000), "those behind it wait no more");
}
