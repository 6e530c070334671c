//! Messages that must break their connection.

use doorbell_core::nic::Rights;
use doorbell_core::wire::PathMtu;

use super::dice::Dice;
use super::message::{Extra, Kind, Message, Store, Stream, WORDS, What};
use super::program::{End, Round};

/// What is wrong with a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wrong {
    /// A segment of what is sent, or of what is to be read into.
    Source(BadKey),
    /// A segment of the receive.
    Landing(BadKey),
    /// The receive has no room for the message.
    TooSmall,
    /// What is written to, read, added to, or swapped.
    Remote(BadKey),
    /// The key that is to be taken back.
    TakenBack(BadKey),
    /// The word is none: its address lies so many bytes behind one.
    Misaligned(usize),
    /// The queue pair over there allows no such operation at all.
    NotGranted,
    /// The queue pair was connected without reads and atomic operations.
    NoReads,
    /// The queue pair was connected without metadata.
    NoMetadata,
    /// The two ends do not agree on the path MTU.
    Mtu,
}

/// What is wrong with a key, or with what it is used for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BadKey {
    /// It was never given.
    Unknown,
    /// It was taken back, and its place in the table is free.
    Revoked,
    /// It was taken back, and its place has another registration.
    Replaced,
    /// A message before took it back. There must be one.
    Invalidated,
    /// It is of another protection domain.
    Domain,
    /// The registration grants everything but this.
    Rights,
    /// The range goes so many bytes beyond the end.
    Beyond(usize),
    /// The range begins a byte before the beginning.
    Before,
    /// The range wraps around the end of all addresses.
    Wraps,
}

impl BadKey {
    /// One that no program was given, or no more.
    fn lost(dice: &mut Dice) -> Self {
        dice.pick(&[Self::Unknown, Self::Revoked, Self::Replaced, Self::Domain])
    }

    pub fn of_range(dice: &mut Dice) -> Self {
        match dice.below(8) {
            0..3 => Self::lost(dice),
            3 | 4 => Self::Beyond(1),
            5 => Self::Beyond(dice.between(1, 10_000)),
            6 => Self::Before,
            _ => Self::Wraps,
        }
    }

    pub fn of_access(dice: &mut Dice) -> Self {
        if dice.percent(20) { Self::Rights } else { Self::of_range(dice) }
    }

    fn of_peer(dice: &mut Dice) -> Self {
        if dice.percent(20) { Self::Invalidated } else { Self::of_access(dice) }
    }
}

/// What a message needs of the peer's queue pair.
pub fn right_for(what: What) -> Rights {
    match what {
        What::Send => Rights::NONE,
        What::Write { .. } => Rights::REMOTE_WRITE,
        What::Read { .. } => Rights::REMOTE_READ,
        What::Add { .. } | What::Swap { .. } => Rights::REMOTE_ATOMIC,
    }
}

/// All that peers may do, but for some of it.
pub fn without(right: Rights) -> Rights {
    let all = [Rights::REMOTE_WRITE, Rights::REMOTE_READ, Rights::REMOTE_ATOMIC];
    let left = all.into_iter().filter(|&other| other != right);
    left.fold(Rights::LOCAL_WRITE, |rights, other| rights | other)
}

/// Something that touches the peer's memory.
fn touching(dice: &mut Dice) -> What {
    match dice.below(4) {
        0 => What::Write { to: 0, lent: false },
        1 => What::Read { from: Store::Library, at: 0 },
        2 => What::Add { word: dice.below(WORDS) },
        _ => What::Swap { word: dice.below(WORDS), hits: dice.percent(50) },
    }
}

/// Makes one message of the run wrong.
pub fn spoil(dice: &mut Dice, pairs: &mut [[End; 2]], rounds: &mut [Round]) {
    let (round, pair, end) = (dice.below(rounds.len()), dice.below(pairs.len()), dice.below(2));
    let stream = &mut rounds[round].streams[pair][end];
    if stream.messages.is_empty() {
        stream.push(dice, pairs[pair][end].mtu);
    }
    let mut at = dice.below(stream.messages.len());
    let wrong = match dice.below(20) {
        0..3 => Wrong::Source(BadKey::of_range(dice)),
        3..5 => Wrong::Landing(BadKey::of_access(dice)),
        5..7 => Wrong::TooSmall,
        7..12 => Wrong::Remote(BadKey::of_peer(dice)),
        12 => Wrong::TakenBack(match dice.percent(30) {
            true => BadKey::Invalidated,
            false => BadKey::lost(dice),
        }),
        13 => Wrong::Misaligned(dice.between(1, 7)),
        14..16 => Wrong::NotGranted,
        16 => Wrong::NoReads,
        17 => Wrong::NoMetadata,
        _ => Wrong::Mtu,
    };
    if let Wrong::Remote(BadKey::Invalidated) | Wrong::TakenBack(BadKey::Invalidated) = wrong {
        at = take_back_before(dice, stream, at, pairs[pair][end].mtu);
    }
    let message = stream.messages[at].clone();
    let message = spoilt(dice, message, wrong, pairs, pair, end);
    if wrong == Wrong::Mtu && message.reads() {
        // The two do not agree on how many numbers it takes, so nothing can come after it.
        stream.messages.truncate(at + 1);
    }
    stream.target = stream.target.max(message.len);
    stream.library = stream.library.max(message.len);
    stream.messages[at] = message;
    stream.settle();
    spread(dice, pairs, rounds, (pair, end), wrong);
}

/// Has a message before another take the lent key back. Where that is then.
fn take_back_before(dice: &mut Dice, stream: &mut Stream, at: usize, mtu: PathMtu) -> usize {
    if stream.invalidator().is_some_and(|other| other < at) {
        return at;
    }
    stream.push(dice, mtu);
    let message = stream.messages.pop().expect("it was just pushed");
    let before = dice.below(at + 1);
    let message = Message { extra: Extra::Invalidate, ..message.doing(What::Send) };
    stream.messages.insert(before, message);
    stream.settle();
    at + 1
}

/// A message made wrong, and the ends of its connection as that needs them to be.
fn spoilt(
    dice: &mut Dice,
    mut message: Message,
    wrong: Wrong,
    pairs: &mut [[End; 2]],
    pair: usize,
    end: usize,
) -> Message {
    let [a, b] = &mut pairs[pair];
    let (from, to) = if end == 0 { (a, b) } else { (b, a) };
    message.len = message.len.max(1);
    let what = match (wrong, message.what) {
        (Wrong::Landing(_) | Wrong::TooSmall | Wrong::TakenBack(_), _) => What::Send,
        (Wrong::Source(_), what) if !message.is_atomic() => match what {
            What::Send => What::Send,
            _ if dice.percent(50) => What::Read { from: Store::Library, at: 0 },
            _ => What::Write { to: 0, lent: false },
        },
        (Wrong::Remote(BadKey::Invalidated), _) => match dice.percent(50) {
            true => What::Write { to: 0, lent: true },
            false => What::Read { from: Store::Lent, at: 0 },
        },
        (Wrong::Remote(_) | Wrong::NotGranted, _) => touching(dice),
        (Wrong::Misaligned(_), _) if dice.percent(50) => What::Add { word: dice.below(WORDS) },
        (Wrong::Misaligned(_), _) => What::Swap { word: dice.below(WORDS), hits: true },
        (Wrong::NoReads, what) if message.asks() => what,
        (Wrong::NoReads, _) => What::Read { from: Store::Library, at: 0 },
        (Wrong::Source(_) | Wrong::NoMetadata, _) => What::Write { to: 0, lent: false },
        (Wrong::Mtu, _) => match dice.below(3) {
            0 => What::Send,
            1 => What::Write { to: 0, lent: false },
            _ => What::Read { from: Store::Library, at: 0 },
        },
    };
    if wrong == Wrong::Mtu {
        to.mtu = dice.pick(&PathMtu::ALL.map(|mtu| match mtu == from.mtu {
            true if mtu == PathMtu::Mtu256 => PathMtu::Mtu512,
            true => PathMtu::Mtu256,
            false => mtu,
        }));
        message.len = 2 * from.mtu.bytes().max(to.mtu.bytes());
        message.source = Kind::Buf;
        message.landing = Kind::Buf;
    }
    message = message.doing(what);
    if message.extra == Extra::Invalidate {
        message.extra = Extra::Nothing;
    }
    let in_part = matches!(wrong, Wrong::Mtu | Wrong::Remote(BadKey::Beyond(_)));
    if in_part && message.extra == Extra::Nothing && matches!(what, What::Write { .. }) {
        // Or each of its packets might be a write of its own, and some of them right.
        message.extra = Extra::Imm(0);
    }
    message.wrong = Some(wrong);
    let lists = [Kind::Segment, Kind::List];
    match wrong {
        Wrong::Source(_) => {
            message.source = dice.pick(&lists);
            if message.reads() {
                message.wrong = Some(Wrong::Source(BadKey::of_access(dice)));
            }
        }
        Wrong::Landing(_) => {
            message.landing = dice.pick(&lists);
            message.room = message.len + dice.below(20);
        }
        Wrong::TooSmall => message.room = dice.below(message.len),
        Wrong::TakenBack(_) => message.extra = Extra::Invalidate,
        Wrong::NotGranted => to.rights = without(right_for(what)),
        Wrong::NoReads => {
            from.asks = 0;
            to.reads = dice.pick(&[0, to.reads]);
        }
        Wrong::NoMetadata => {
            from.metadata = false;
            message.extra = Extra::Metadata(dice.below(17));
        }
        // A read that is asked for packet by packet is the same to both.
        Wrong::Mtu => from.window = from.window.max(128),
        Wrong::Remote(_) | Wrong::Misaligned(_) => {}
    }
    message
}

/// Sees to it that what was spoiled for one message spoils no others.
fn spread(
    dice: &mut Dice,
    pairs: &[[End; 2]],
    rounds: &mut [Round],
    (pair, end): (usize, usize),
    wrong: Wrong,
) {
    let shorter = pairs[pair].iter().map(|end| end.mtu.bytes()).min().unwrap_or(256);
    for stream in rounds.iter_mut().map(|round| &mut round.streams[pair]) {
        for message in stream.iter_mut().flat_map(|stream| &mut stream.messages) {
            if wrong == Wrong::Mtu && message.wrong.is_none() {
                message.len = message.len.min(dice.below(shorter + 1));
            }
        }
        for message in stream[end].messages.iter_mut().filter(|message| message.wrong.is_none()) {
            let granted = pairs[pair][1 - end].rights.include(right_for(message.what));
            match wrong {
                Wrong::NotGranted if !granted => *message = message.clone().harmless(),
                Wrong::NoReads if message.asks() => *message = message.clone().harmless(),
                Wrong::NoMetadata if matches!(message.extra, Extra::Metadata(_)) => {
                    message.extra = Extra::Imm(0);
                }
                _ => {}
            }
        }
    }
}
