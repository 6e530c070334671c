//! What a program does: rounds of steps that are joined, raced and dropped.

use proptest::prelude::*;

/// The devices that the NICs of a plan are over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Over {
    /// A simulated Ethernet that loses, doubles and delays frames.
    Lossy,
    /// A simulated Ethernet whose devices say what was delivered.
    Lossless,
    Shm,
}

/// Something that one NIC does with the memory of another, or with its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// Write so many words into a cell of the peer's.
    Write { cell: u8, words: u8, inline: bool },
    /// Read words of the peer's, from one on.
    Read { first: u8, words: u8 },
    /// Add to the peer's counter.
    Add,
    /// Replace the peer's counter by one more than it is believed to be.
    Swap,
    /// Send a message, for which the peer has a receive.
    Send { len: u16 },
    /// Wait for a message, for a while.
    Receive,
    /// Revoke one's own memory, use it alone for a while, and register it anew.
    Own { wait: u8, change: bool },
    /// Give one's own memory another key.
    Renew,
    /// Lend bytes to the peer, which reads them.
    Lend { len: u16, wait: u8 },
    /// Map the peer's memory, and write it.
    Map,
    /// Let the peer write to memory of a pool, and keep what has come.
    Pool { len: u16, wait: u8 },
}

/// Steps as one future.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Tree {
    /// A step of the first NIC, with the second.
    Step(u8, u8, Step),
    Join(Vec<Tree>),
    /// The first that ends has the others dropped.
    Select(Vec<Tree>),
    /// Dropped after so many polls.
    Dropped(Box<Tree>, u8),
    /// The next begins when one has ended.
    Then(Vec<Tree>),
}

/// A program of several NICs, which does something in each of its rounds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Plan {
    pub over: Over,
    pub nics: u8,
    pub seed: u64,
    pub rounds: Vec<Tree>,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0..4_u8, 1..9_u8, any::<bool>())
            .prop_map(|(cell, words, inline)| Step::Write { cell, words, inline }),
        4 => (any::<u8>(), 1..65_u8).prop_map(|(first, words)| Step::Read { first, words }),
        3 => Just(Step::Add),
        1 => Just(Step::Swap),
        3 => (0..9000_u16).prop_map(|len| Step::Send { len }),
        2 => Just(Step::Receive),
        3 => (0..20_u8, any::<bool>()).prop_map(|(wait, change)| Step::Own { wait, change }),
        1 => Just(Step::Renew),
        1 => (0..9000_u16, 0..9_u8).prop_map(|(len, wait)| Step::Lend { len, wait }),
        1 => Just(Step::Map),
        1 => (1..9000_u16, 0..9_u8).prop_map(|(len, wait)| Step::Pool { len, wait }),
    ]
}

fn tree(nics: u8) -> impl Strategy<Value = Tree> {
    let leaf = (0..nics, 1..nics, step())
        .prop_map(move |(who, further, step)| Tree::Step(who, (who + further) % nics, step));
    leaf.prop_recursive(3, 16, 5, |inner| {
        let some = || prop::collection::vec(inner.clone(), 1..6);
        prop_oneof![
            4 => some().prop_map(Tree::Join),
            1 => some().prop_map(Tree::Select),
            2 => some().prop_map(Tree::Then),
            2 => (inner.clone(), 0..12_u8)
                .prop_map(|(tree, polls)| Tree::Dropped(Box::new(tree), polls)),
        ]
    })
}

/// Plans of two or three NICs.
pub fn plan(over: Over) -> impl Strategy<Value = Plan> {
    (2..4_u8, any::<u64>()).prop_flat_map(move |(nics, seed)| {
        prop::collection::vec(tree(nics), 1..6).prop_map(move |rounds| Plan {
            over,
            nics,
            seed,
            rounds,
        })
    })
}
