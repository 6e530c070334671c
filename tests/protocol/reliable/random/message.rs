//! Messages, and how they are drawn.

use doorbell_core::nic::MOST_INLINE;
use doorbell_core::wire::{Metadata, PathMtu};

use super::dice::{self, Dice};
use super::spoil::Wrong;

/// How many words there are for atomic operations. One more lies behind them, for nobody.
pub const WORDS: usize = 3;

/// As much as a request carries in itself.
pub const SMALL: usize = MOST_INLINE;

/// What one end of a connection asks of the other in one life of it.
#[derive(Clone, Default, Debug)]
pub struct Stream {
    pub messages: Vec<Message>,
    /// The lengths of the memory that the writes go to, and of the memory that is only read.
    pub target: usize,
    pub library: usize,
    /// Receives that no message comes for.
    pub spare: usize,
    /// Receives posted before the connection is made.
    pub early: usize,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// No memory, or a request that carries its bytes in itself.
    None,
    Buf,
    Segment,
    List,
}

/// What a message does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum What {
    Send,
    /// Writes to the target, from a byte on, by its own key or the one that is lent.
    Write {
        to: usize,
        lent: bool,
    },
    Read {
        from: Store,
        at: usize,
    },
    Add {
        word: usize,
    },
    /// Swaps a word, which is as expected or not.
    Swap {
        word: usize,
        hits: bool,
    },
}

/// What is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Store {
    /// What nobody writes.
    Library,
    /// What the same stream writes to.
    Target,
    /// The same, by the key that is lent.
    Lent,
}

/// What goes with a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Extra {
    Nothing,
    Imm(u32),
    /// The key that was lent is taken back: once in a stream at most.
    Invalidate,
    /// So many bytes.
    Metadata(usize),
}

#[derive(Clone, Debug)]
pub struct Message {
    /// From what its bytes, and what is added or swapped, are made.
    pub number: u64,
    pub what: What,
    pub len: usize,
    pub extra: Extra,
    pub signalled: bool,
    pub awaited: bool,
    pub solicited: bool,
    pub fenced: bool,
    /// Where its bytes come from, or what is read goes.
    pub source: Kind,
    /// The receive that it takes, if it takes one, and how much has room there.
    pub landing: Kind,
    pub room: usize,
    pub wrong: Option<Wrong>,
}

impl Message {
    pub fn takes_receive(&self) -> bool {
        self.what == What::Send || self.extra != Extra::Nothing
    }

    pub fn packets(&self, mtu: PathMtu) -> usize {
        self.len.div_ceil(mtu.bytes()).max(1)
    }

    pub fn reads(&self) -> bool {
        matches!(self.what, What::Read { .. })
    }

    pub fn is_atomic(&self) -> bool {
        matches!(self.what, What::Add { .. } | What::Swap { .. })
    }

    /// Whether only an answer of its own completes it, and fences wait for it.
    pub fn asks(&self) -> bool {
        self.reads() || self.is_atomic()
    }

    /// Where it writes.
    pub fn writes_to(&self) -> Option<usize> {
        match self.what {
            What::Write { to, .. } => Some(to),
            _ => None,
        }
    }

    pub fn metadata(&self) -> Option<Metadata> {
        match self.extra {
            Extra::Metadata(len) => Metadata::new(&dice::bytes(!self.number, len)),
            _ => None,
        }
    }

    fn draw(dice: &mut Dice, mtu: PathMtu, huge: bool) -> Self {
        let mtu = mtu.bytes();
        let len = match dice.below(20) {
            _ if huge => dice.between(60_000, 130_000),
            0 | 1 => 0,
            2..8 => dice.between(1, SMALL),
            8..12 => dice.between(1, mtu),
            12..16 => (dice.between(1, 3) * mtu + dice.below(3)).saturating_sub(1),
            16..19 => dice.between(mtu, 4 * mtu),
            _ => dice.between(mtu, 8 * mtu),
        };
        let what = match dice.below(100) {
            0..40 => What::Send,
            40..72 => What::Write { to: 0, lent: dice.percent(15) },
            72..88 => {
                let from = dice.pick(&[Store::Library, Store::Target, Store::Target, Store::Lent]);
                What::Read { from, at: 0 }
            }
            88..94 => What::Add { word: dice.below(WORDS) },
            _ => What::Swap { word: dice.below(WORDS), hits: dice.percent(60) },
        };
        let extra = match (dice.below(100), what) {
            (0..25, _) => Extra::Imm(dice.u64() as u32),
            (25..35, What::Send) => Extra::Invalidate,
            (25..40, What::Write { .. }) => Extra::Metadata(dice.below(Metadata::MOST + 1)),
            _ => Extra::Nothing,
        };
        let source = dice.pick(&[Kind::None, Kind::Buf, Kind::Segment, Kind::List]);
        let landing = dice.pick(&[Kind::None, Kind::Buf, Kind::Buf, Kind::Segment, Kind::List]);
        let room = if dice.percent(50) { 0 } else { dice.below(200) };
        let drawn = Self {
            number: dice.u64(),
            what,
            len,
            extra,
            signalled: dice.percent(70),
            awaited: dice.percent(20),
            solicited: dice.percent(20),
            fenced: dice.percent(20),
            source,
            landing,
            room,
            wrong: None,
        };
        let needed = if what == What::Send { len } else { 0 };
        Self { room: needed + room, ..drawn }.doing(what)
    }

    /// The same doing something else, with what can't go together taken away.
    pub fn doing(mut self, what: What) -> Self {
        self.what = what;
        if self.is_atomic() {
            self.len = 0;
        }
        self.extra = match (self.extra, what) {
            (Extra::Invalidate, What::Write { .. }) => Extra::Nothing,
            (Extra::Metadata(_), What::Send) => Extra::Nothing,
            (extra, What::Send | What::Write { .. }) => extra,
            _ => Extra::Nothing,
        };
        let carries = if self.reads() { 0 } else { SMALL };
        match self.source {
            _ if self.is_atomic() => self.source = Kind::None,
            Kind::None if self.len > carries => self.source = Kind::Buf,
            _ => {}
        }
        let needed = if what == What::Send { self.len } else { 0 };
        match self.landing {
            Kind::None if needed > 0 => self.landing = Kind::Segment,
            Kind::None => self.room = 0,
            _ => {}
        }
        self.room = self.room.max(needed);
        self
    }

    /// The same doing what needs no right, and no reads.
    pub fn harmless(self) -> Self {
        Self { len: 0, ..self }.doing(What::Send)
    }
}

/// Has some writes go where something before them reads, and wait for that.
fn fence_some(dice: &mut Dice, messages: &mut [Message], target: usize) {
    let mut read = None;
    for message in messages {
        let len = message.len;
        match (&mut message.what, read) {
            (What::Read { from: Store::Target | Store::Lent, at }, _) => read = Some(*at),
            (What::Write { to, .. }, Some(at)) if dice.percent(50) => {
                *to = at.min(target - len);
                message.fenced = true;
            }
            _ => {}
        }
    }
}

impl Stream {
    pub fn draw(dice: &mut Dice, mtu: PathMtu) -> Self {
        let count = match dice.below(10) {
            0 => 0,
            1..6 => dice.between(1, 6),
            6..9 => dice.between(4, 15),
            _ => dice.between(10, 30),
        };
        let huge = dice.percent(4).then(|| dice.below(count.max(1)));
        let mut messages: Vec<Message> =
            (0..count).map(|index| Message::draw(dice, mtu, huge == Some(index))).collect();
        let in_target = |message: &&Message| match message.what {
            What::Write { .. } => true,
            What::Read { from, .. } => from != Store::Library,
            _ => false,
        };
        let lens = messages.iter().filter(in_target).map(|message| message.len);
        let (longest, total) = lens.fold((0, 0), |(max, sum), len| (len.max(max), sum + len));
        // From all on top of each other to hardly any.
        let target = 1 + longest + dice.below(2 * total + 100);
        let reads = messages.iter().filter(|message| message.reads());
        let longest = reads.map(|message| message.len).max().unwrap_or(0);
        let library = 1 + longest + dice.below(200);
        for message in &mut messages {
            let len = message.len;
            match &mut message.what {
                What::Read { from: Store::Library, at } => *at = dice.below(library - len + 1),
                What::Write { to: at, .. } | What::Read { at, .. } => {
                    *at = dice.below(target - len + 1);
                }
                _ => {}
            }
        }
        fence_some(dice, &mut messages, target);
        let takers = messages.iter().filter(|message| message.takes_receive()).count();
        let early = if dice.percent(50) { dice.below(takers + 1) } else { 0 };
        let spare = if dice.percent(30) { dice.between(1, 4) } else { 0 };
        let mut stream = Self { messages, target, library, spare, early };
        stream.settle();
        stream
    }

    /// One more, drawn like the others.
    pub fn push(&mut self, dice: &mut Dice, mtu: PathMtu) {
        let message = Message::draw(dice, mtu, false);
        self.target = self.target.max(message.len);
        self.library = self.library.max(message.len);
        self.messages.push(message);
        self.settle();
    }

    /// Which message takes the lent key back.
    pub fn invalidator(&self) -> Option<usize> {
        let takes_back =
            |message: &Message| message.extra == Extra::Invalidate && message.wrong.is_none();
        self.messages.iter().position(takes_back)
    }

    /// Sees to it that the lent key is taken back once, and not used then, nor while it is read by.
    pub fn settle(&mut self) {
        let Some(first) = self.invalidator() else { return };
        let mut lent = false;
        for (index, message) in self.messages.iter_mut().enumerate() {
            if message.wrong.is_some() {
                continue;
            }
            match &mut message.what {
                What::Send if index == first => message.fenced |= lent,
                What::Send if message.extra == Extra::Invalidate => message.extra = Extra::Nothing,
                What::Write { lent, .. } if index > first => *lent = false,
                What::Read { from: from @ Store::Lent, .. } => match index < first {
                    true => lent = true,
                    false => *from = Store::Target,
                },
                _ => {}
            }
        }
    }
}
