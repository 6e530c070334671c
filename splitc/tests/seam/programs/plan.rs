//! Programs by seed: what every process does, and where.
//!
//! A program is a row of phases. In a phase each slot of an array has one writer, or is only
//! changed in ways whose order does not matter, or is only read; so what it holds behind the phase
//! is known.

use doorbell_simulation::Luck;
use doorbell_splitc::Carrier;

use crate::programs::kinds::{Verb, Way};

/// The shape of an array that is allocated.
#[derive(Clone, Debug)]
pub struct New {
    pub kind: usize,
    pub layout: Layout,
}

/// How the elements of an array are dealt to processes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Layout {
    Blocks {
        len: usize,
        block: usize,
    },
    Matrix {
        size: [usize; 2],
        grid: Option<[usize; 2]>,
    },
    /// Each process has allocated so many elements by itself.
    Alone(Vec<usize>),
}

/// How many types of elements there are, and which of them are long.
pub const KINDS: usize = 11;
pub const LONG: usize = 10;
/// The types below this are numbers.
pub const NUMBERS: usize = 6;

impl Layout {
    /// The grid of processes of a matrix.
    pub fn grid(&self, processes: usize) -> [usize; 2] {
        let Self::Matrix { grid, .. } = self else { return [1, processes] };
        grid.unwrap_or_else(|| {
            let tall = |rows: &usize| processes.is_multiple_of(*rows) && rows * rows <= processes;
            let rows = (1..=processes).rev().find(tall).expect("one row fits");
            [rows, processes / rows]
        })
    }

    /// Rows and columns of a process's block of a matrix.
    pub fn block(&self, processes: usize) -> [usize; 2] {
        let grid = self.grid(processes);
        match self {
            Self::Matrix { size, .. } => [0, 1].map(|side| size[side].div_ceil(grid[side]).max(1)),
            _ => [1, 1],
        }
    }

    /// How many slots each process has.
    pub fn counts(&self, processes: usize) -> Vec<usize> {
        match self {
            Self::Blocks { .. } => {
                let mut counts = vec![0; processes];
                self.places(processes).iter().for_each(|(rank, _)| counts[*rank] += 1);
                counts
            }
            Self::Matrix { .. } => vec![self.block(processes).iter().product(); processes],
            Self::Alone(counts) => counts.clone(),
        }
    }

    /// The process and the slot of each element, in the order of indices.
    pub fn places(&self, processes: usize) -> Vec<(usize, usize)> {
        let mut dealt = vec![0; processes];
        match self {
            Self::Blocks { len, block } => (0..*len)
                .map(|index| {
                    let rank = index / block % processes;
                    dealt[rank] += 1;
                    (rank, dealt[rank] - 1)
                })
                .collect(),
            Self::Matrix { size: [rows, columns], .. } => {
                let ([tall, wide], grid) = (self.block(processes), self.grid(processes));
                let of = |row: usize, column: usize| {
                    let rank = row / tall * grid[1] + column / wide;
                    (rank, row % tall * wide + column % wide)
                };
                (0..*rows)
                    .flat_map(|row| (0..*columns).map(move |column| of(row, column)))
                    .collect()
            }
            Self::Alone(_) => Vec::new(),
        }
    }
}

/// An operation of a process on slots of one process.
#[derive(Clone, Debug)]
pub struct Op {
    pub object: usize,
    pub to: usize,
    pub from: usize,
    pub len: usize,
    /// Only so many slots of every so many, in whole blocks.
    pub strided: Option<(usize, usize)>,
    pub does: Does,
    pub salt: u64,
}

impl Op {
    /// The slots that are concerned.
    pub fn slots(&self) -> impl Iterator<Item = usize> + use<> {
        let (from, (block, blocks, step)) = (self.from, self.blocks());
        (0..blocks).flat_map(move |at| (0..block).map(move |slot| from + at * step + slot))
    }

    /// How many slots are in a block, how many blocks there are, and how far apart these begin.
    pub fn blocks(&self) -> (usize, usize, usize) {
        match self.strided {
            None => (self.len, 1, self.len),
            Some((block, step)) => (block, (self.len - block) / step + 1, step),
        }
    }

    /// The number that a slot's new value is drawn from.
    pub fn drawn(&self, slot: usize) -> u64 {
        Luck::stream(self.salt, slot as u32).draw()
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Does {
    Read(Reading),
    Write(Writing),
    Change(Verb, Way),
    Bump,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reading {
    Each,
    Gets,
    Span,
    SpanLater,
    Gather,
    Copy,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Writing {
    Each,
    Puts,
    Stores,
    StoresSoon,
    Span,
    SpanPut,
    SpanStore,
    Scatter,
    Copy,
    Signal,
}

impl Writing {
    pub fn is_store(self) -> bool {
        matches!(self, Self::Stores | Self::StoresSoon | Self::SpanStore)
    }
}

/// How a phase ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    SyncAndBarrier,
    SplitBarrier,
    AllStoreSync,
    /// Each process waits for as many bytes as are stored there.
    StoreSync,
}

#[derive(Clone, Debug)]
pub struct Phase {
    /// How each process reaches each other one from here on.
    pub carriers: Vec<Vec<Option<Carrier>>>,
    pub new: Option<New>,
    pub free: Option<usize>,
    /// The array that is private for a while, and what its new values are drawn from.
    pub private: Option<(usize, u64)>,
    /// For each process its rounds of operations, between which it syncs.
    pub ops: Vec<[Vec<Op>; 2]>,
    pub end: End,
    /// Whether teams of so many colours reduce something.
    pub teams: Option<u32>,
}

/// The generator of programs.
pub struct Maker {
    pub luck: Luck,
    pub processes: usize,
    /// The carriers to change between.
    pub carriers: Vec<Carrier>,
    /// The arrays that there are.
    pub objects: Vec<Option<New>>,
}

impl Maker {
    fn below(&mut self, bound: usize) -> usize {
        self.luck.below(bound as u64) as usize
    }

    fn one_in(&mut self, many: usize) -> bool {
        self.below(many) == 0
    }

    fn new_array(&mut self) -> New {
        let kind = self.below(KINDS);
        let most = if kind == LONG { 9 } else { 70 };
        let len = self.below(most);
        let processes = self.processes;
        let layout = match self.below(5) {
            0 => Layout::Blocks { len, block: 1 },
            1 => Layout::Blocks { len, block: len.div_ceil(processes).max(1) },
            2 => Layout::Blocks { len, block: 1 + self.below(7) },
            3 => {
                let side = if kind == LONG { 3 } else { 9 };
                let grid = [[1, processes], [processes, 1]][self.below(2)];
                let grid = self.one_in(2).then_some(grid);
                Layout::Matrix { size: [1 + self.below(side), 1 + self.below(side)], grid }
            }
            _ => Layout::Alone((0..processes).map(|_| self.below(most / 2)).collect()),
        };
        New { kind, layout }
    }

    fn drawn_carriers(&mut self) -> Vec<Option<Carrier>> {
        let drawn = (0..self.processes).map(|_| {
            let at = self.luck.below(self.carriers.len() as u64) as usize;
            self.carriers.get(at).copied()
        });
        drawn.collect()
    }

    /// The next phase of the program.
    pub fn phase(&mut self) -> Phase {
        let processes = self.processes;
        let carriers = (0..processes).map(|_| self.drawn_carriers()).collect();
        let there: Vec<_> =
            (0..self.objects.len()).filter(|at| self.objects[*at].is_some()).collect();
        let new = (there.len() < 2 || there.len() < 6 && self.one_in(2)).then(|| self.new_array());
        let free = (there.len() > 3 && self.one_in(4)).then(|| there[self.below(there.len())]);
        if let Some(new) = &new {
            self.objects.push(Some(new.clone()));
        }
        if let Some(free) = free {
            self.objects[free] = None;
        }
        let collective = |new: &Option<New>| matches!(new, Some(New { layout, .. }) if !matches!(layout, Layout::Alone(_)));
        let may: Vec<_> =
            (0..self.objects.len()).filter(|at| collective(&self.objects[*at])).collect();
        let private = (!may.is_empty() && self.one_in(3))
            .then(|| (may[self.below(may.len())], self.luck.draw()));
        let mut ops = vec![[Vec::new(), Vec::new()]; processes];
        for object in 0..self.objects.len() {
            self.of_object(object, &mut ops);
        }
        let stores = ops.iter().flatten().flatten().any(|op| match op.does {
            Does::Write(writing) => writing.is_store(),
            Does::Change(_, way) => way == Way::Stored,
            _ => false,
        });
        let end = match self.below(4) {
            0 if !stores => End::SyncAndBarrier,
            1 if !stores => End::SplitBarrier,
            0 | 2 => End::AllStoreSync,
            _ => End::StoreSync,
        };
        let teams = self.one_in(4).then(|| 1 + self.below(3) as u32);
        Phase { carriers, new, free, private, ops, end, teams }
    }

    /// Adds the operations on one array in a phase.
    fn of_object(&mut self, object: usize, ops: &mut [[Vec<Op>; 2]]) {
        let Some(New { kind, layout }) = self.objects[object].clone() else { return };
        let role = self.below(4);
        let verb = [Verb::Add, Verb::Min, Verb::Max][self.below(3)];
        for (to, count) in layout.counts(self.processes).into_iter().enumerate() {
            let mut from = 0;
            while from < count {
                let most = if kind == LONG { 3 } else { 12 };
                let len = (1 + self.below(most)).min(count - from);
                let strided = (len > 2 && self.one_in(3)).then(|| {
                    let block = 1 + self.below(len - 1);
                    (block, block + self.below(3))
                });
                let salt = self.luck.draw();
                let op = Op { object, to, from, len, strided, does: Does::Bump, salt };
                match role {
                    0 => self.read_by_many(&op, ops),
                    1 if kind < NUMBERS => self.changed_by_many(&op, Some(verb), ops),
                    2 => self.changed_by_many(&op, None, ops),
                    _ => self.written_by_one(&op, &layout, ops),
                }
                from += len;
            }
        }
    }

    fn read_by_many(&mut self, op: &Op, ops: &mut [[Vec<Op>; 2]]) {
        use Reading::{Copy, Each, Gather, Gets, Span, SpanLater};
        for _ in 0..self.below(3) {
            let reading = [Each, Gets, Span, SpanLater, Gather, Copy][self.below(6)];
            let (by, round) = (self.below(self.processes), self.below(2));
            ops[by][round].push(Op { does: Does::Read(reading), ..op.clone() });
        }
    }

    fn changed_by_many(&mut self, op: &Op, verb: Option<Verb>, ops: &mut [[Vec<Op>; 2]]) {
        for _ in 0..self.below(4) {
            let way = [Way::Fetched, Way::Split, Way::Put, Way::Stored][self.below(4)];
            let does = verb.map_or(Does::Bump, |verb| Does::Change(verb, way));
            let (by, round) = (self.below(self.processes), self.below(2));
            ops[by][round].push(Op { does, salt: self.luck.draw(), ..op.clone() });
        }
    }

    fn written_by_one(&mut self, op: &Op, layout: &Layout, ops: &mut [[Vec<Op>; 2]]) {
        use Writing::{
            Copy, Each, Puts, Scatter, Signal, Span, SpanPut, SpanStore, Stores, StoresSoon,
        };
        let all = [Each, Puts, Span, SpanPut, Scatter, Copy, Signal, Stores, StoresSoon, SpanStore];
        let by = self.below(self.processes);
        let mut writing = all[self.below(all.len())];
        if writing == Scatter && !matches!(layout, Layout::Blocks { .. }) {
            writing = SpanPut;
        }
        let round = self.below(2);
        ops[by][round].push(Op { does: Does::Write(writing), ..op.clone() });
        // Whoever has written something without a store, and synced, reads it, or writes once more.
        if round == 0 && !writing.is_store() && writing != Signal {
            let does = match self.below(3) {
                0 => return,
                1 => Does::Read(Reading::Span),
                _ => Does::Write(all[self.below(4)]),
            };
            let salt = self.luck.draw();
            ops[by][1].push(Op { does, salt, ..op.clone() });
        }
    }
}
