//! Blocks of the plate, and their edges.

use std::ops::Range;

use bytes::{BufMut, Bytes, BytesMut};

/// The temperature of the upper edge; that of the others is zero.
const HOT: f64 = 100.0;

/// The division of the plate into blocks, one for each member, in rows and columns.
pub struct Division {
    cells: usize,
    rows: usize,
    columns: usize,
}

/// The cells of a block: their rows and columns on the plate.
pub type Place = [Range<usize>; 2];

impl Division {
    /// Divides a plate among members, into blocks that are as square as may be.
    pub fn new(cells: usize, members: usize) -> Self {
        let divides = |rows: &usize| members.is_multiple_of(*rows) && rows * rows <= members;
        let rows = (1..=members).filter(divides).max().unwrap_or(1);
        Self { cells, rows, columns: members / rows }
    }

    /// The cells of a member's block.
    pub fn place(&self, rank: usize) -> Place {
        let part = |at: usize, parts: usize| at * self.cells / parts..(at + 1) * self.cells / parts;
        [part(rank / self.columns, self.rows), part(rank % self.columns, self.columns)]
    }

    /// The member on a side of a member's block, if the plate goes on there.
    fn beside(&self, rank: usize, side: Side) -> Option<usize> {
        let (row, column) = (rank / self.columns, rank % self.columns);
        match side {
            Side::Above => row.checked_sub(1).map(|_| rank - self.columns),
            Side::Below => (row + 1 < self.rows).then_some(rank + self.columns),
            Side::Left => column.checked_sub(1).map(|_| rank - 1),
            Side::Right => (column + 1 < self.columns).then_some(rank + 1),
        }
    }
}

/// A side of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    Above,
    Below,
    Left,
    Right,
}

/// A block of the plate, with a rim around it that has the cells of the neighbours.
pub struct Block {
    height: usize,
    width: usize,
    /// The cells of the block and of the rim, row by row.
    cells: Vec<f64>,
    next: Vec<f64>,
    /// The sides on which the plate goes on, and whose block is there.
    sides: Vec<(Side, usize)>,
}

impl Block {
    /// The block of a member, before the first step.
    pub fn new(division: &Division, rank: usize) -> Self {
        let [rows, columns] = division.place(rank);
        let (height, width) = (rows.len(), columns.len());
        let mut cells = vec![0.0; (height + 2) * (width + 2)];
        if rows.start == 0 {
            cells[..width + 2].fill(HOT);
        }
        let all = [Side::Above, Side::Below, Side::Left, Side::Right];
        let sides = all.into_iter().filter_map(|side| Some((side, division.beside(rank, side)?)));
        Self { height, width, next: cells.clone(), cells, sides: sides.collect() }
    }

    /// The sides on which the plate goes on, and the ranks of the members there.
    pub fn sides(&self) -> Vec<(Side, usize)> {
        self.sides.clone()
    }

    /// The place of a cell of the block, or of the rim, counted from the rim's first.
    fn at(&self, row: usize, column: usize) -> usize {
        row * (self.width + 2) + column
    }

    /// Has each cell become the mean of its neighbours.
    pub fn step(&mut self) {
        let line = self.width + 2;
        for row in 1..=self.height {
            for at in self.at(row, 1)..self.at(row, 1) + self.width {
                let [above, below] = [self.cells[at - line], self.cells[at + line]];
                let [left, right] = [self.cells[at - 1], self.cells[at + 1]];
                self.next[at] = 0.25 * (above + below + left + right);
            }
        }
        std::mem::swap(&mut self.cells, &mut self.next);
    }

    /// The places of the cells along a side: the outermost of the block, or those of the rim.
    fn along(&self, side: Side, is_rim: bool) -> Vec<usize> {
        let inset = usize::from(!is_rim);
        match side {
            Side::Above => (1..=self.width).map(|column| self.at(inset, column)).collect(),
            Side::Below => {
                let row = self.height + 1 - inset;
                (1..=self.width).map(|column| self.at(row, column)).collect()
            }
            Side::Left => (1..=self.height).map(|row| self.at(row, inset)).collect(),
            Side::Right => {
                let column = self.width + 1 - inset;
                (1..=self.height).map(|row| self.at(row, column)).collect()
            }
        }
    }

    /// The outermost cells on a side.
    pub fn edge(&self, side: Side) -> Bytes {
        self.bytes(self.along(side, false))
    }

    /// Sets the rim on a side, in both copies of the cells. Returns `None` if the rim has another
    /// length.
    pub fn set_rim(&mut self, side: Side, bytes: &[u8]) -> Option<()> {
        let places = self.along(side, true);
        let (values, []) = bytes.as_chunks::<8>() else { return None };
        if values.len() != places.len() {
            return None;
        }
        for (place, value) in places.into_iter().zip(values) {
            let value = f64::from_le_bytes(*value);
            (self.cells[place], self.next[place]) = (value, value);
        }
        Some(())
    }

    /// The cells of the block, without the rim.
    pub fn to_bytes(&self) -> Bytes {
        self.part([0..self.height, 0..self.width])
    }

    /// The bytes of some cells of the block, row by row.
    pub fn part(&self, [rows, columns]: Place) -> Bytes {
        let places = rows.flat_map(|row| {
            columns.clone().map(move |column| (row + 1) * (self.width + 2) + column + 1)
        });
        self.bytes(places.collect())
    }

    fn bytes(&self, places: Vec<usize>) -> Bytes {
        let mut bytes = BytesMut::with_capacity(8 * places.len());
        places.into_iter().for_each(|place| bytes.put_f64_le(self.cells[place]));
        bytes.freeze()
    }
}
