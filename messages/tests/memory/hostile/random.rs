//! A stranger that says whatever comes to its mind.

use doorbell_kit::effort;
use doorbell_messages::Match;
use doorbell_simulation::Luck;

use crate::hostile::stage::{Bounded, Requests, Stage};
use crate::wire::{EAGER, SEARCH};

/// The handler of packets with sequence numbers, which endpoints with one device don't send.
const STRIPED: u16 = 20;

/// Draws a word that is often a small number, or one at an edge.
fn word(luck: &mut Luck) -> u64 {
    match luck.below(4) {
        0 => luck.draw(),
        1 => {
            [u64::MAX, u64::MAX - 1, 1 << 63, 1 << 32, u64::from(u32::MAX)][luck.below(5) as usize]
        }
        _ => luck.below(8),
    }
}

/// Has a stranger say anything to an endpoint that has receives, searches, held messages and
/// synchronous sends.
pub async fn a_stranger_that_says_anything_hurts_nobody(device: &str) {
    for seed in 0..effort(3, 50) {
        println!("seed {seed}");
        let stage = Stage::open(device, Requests::Handled).await;
        let (victim, bad) = (&stage.victim, &stage.to_stranger);
        let posted: Vec<_> = (0..50).map(|bits| victim.receive(Match::exactly(bits))).collect();
        let of_stranger = victim.receive(Match::exactly(1 << 20).from(bad));
        let held: Vec<_> = (0..200).map(|bits| bad.send(bits, vec![7; 1000])).collect();
        let synchronous: Vec<_> = (0..20).map(|bits| bad.send_synchronously(bits, "")).collect();
        let bounded = Bounded::to(16 << 20);
        let mut luck = Luck::new(seed);
        for turn in 0..3000 {
            let handler = luck.below(24) as u16;
            let words: Vec<_> = (0..luck.below(7)).map(|_| word(&mut luck)).collect();
            let words = match luck.below(4) {
                0 => words,
                // As many as a handler takes.
                _ if handler == STRIPED => (0..5).map(|_| word(&mut luck)).collect(),
                _ => (0..3).map(|_| word(&mut luck)).collect(),
            };
            let payload = vec![7; [0, 1, 100, 4096][luck.below(4) as usize]];
            // Messages beyond the window, and searches without end, are tests of their own.
            if (handler == EAGER || handler == SEARCH) && luck.below(8) != 0 {
                continue;
            }
            stage.stranger.say_anything(handler, &words, &payload).await;
            bounded.check(format_args!("in turn {turn}"));
        }
        stage.stranger.is_heard().await;
        drop(posted);
        stage.is_well().await;
        let company = stage.left();
        let gone = of_stranger.await;
        assert!(gone.is_err(), "the stranger's bits are others: {gone:?}");
        for send in held.into_iter().chain(synchronous) {
            // Whether a message has left is the stranger's to say; an end it has at any rate.
            let _ = send.await;
        }
        company.is_well().await;
    }
}
