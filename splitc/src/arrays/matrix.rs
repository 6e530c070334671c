//! Matrices that are distributed over the processes in blocks.

use std::fmt;
use std::marker::PhantomData;

use super::allocation::Allocation;
use super::private::Private;
use crate::access::{Place, Span};
use crate::element::Element;
use crate::error::{AccessError, Error};
use crate::global_ptr::{BEYOND, GlobalPtr, Raw};
use crate::world::World;

/// A matrix of which each process has one block of rows and columns, kept row by row.
///
/// The processes form a grid of their own, process 0 in the corner of the first row and column,
/// process 1 beside it, and so on, row after row.
pub struct Matrix<T> {
    allocation: Allocation,
    shape: Shape,
    of: PhantomData<fn() -> T>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Shape {
    /// How many rows and columns the matrix has.
    size: [usize; 2],
    /// How many rows and columns the grid of processes has.
    grid: [usize; 2],
    /// How many rows and columns a whole block has. The last blocks may have fewer.
    block: [usize; 2],
}

impl Shape {
    fn new(size: [usize; 2], grid: [usize; 2]) -> Self {
        let block = [0, 1].map(|side| size[side].div_ceil(grid[side]).max(1));
        Self { size, grid, block }
    }

    /// The rank of the process that has an element, and the element's position in that process's
    /// block.
    #[inline]
    fn place(&self, row: usize, column: usize) -> (usize, usize) {
        let [rows, columns] = self.block;
        let rank = row / rows * self.grid[1] + column / columns;
        (rank, row % rows * columns + column % columns)
    }

    /// The first row and column of a process's block.
    fn first(&self, rank: usize) -> [usize; 2] {
        [rank / self.grid[1] * self.block[0], rank % self.grid[1] * self.block[1]]
    }

    /// How many rows and columns of the matrix the block of a process has.
    fn own(&self, rank: usize) -> [usize; 2] {
        let first = self.first(rank);
        [0, 1].map(|side| self.size[side].saturating_sub(first[side]).min(self.block[side]))
    }
}

/// The numbers of rows and columns of the grid of `processes` processes that is closest to a
/// square.
fn square(processes: usize) -> [usize; 2] {
    let root = processes.isqrt();
    let rows = (1..=root).rev().find(|rows| processes.is_multiple_of(*rows)).unwrap_or(1);
    [rows, processes / rows]
}

impl World {
    /// Allocates a matrix of zeros, of which each process has one block, on a grid of processes
    /// that is as close to a square as their number allows. A collective call: all processes await
    /// it.
    ///
    /// ```
    /// # doorbell_splitc::Job::threads(4).run(async |world| {
    /// let matrix = world.matrix::<f64>(6, 8).await?; // four blocks of 3 × 4
    /// let mut block = matrix.private().await?;
    /// block[0] = world.rank() as f64; // the first element of my block
    /// drop(block);
    /// matrix.share().await?;
    /// assert_eq!(matrix.at(3, 4).read().await?, 3.0);
    /// assert_eq!(matrix.row(0, 0..4)?.read().await?, [0.0; 4]);
    /// # world.barrier().await?;
    /// # Ok(())
    /// # })?;
    /// # Ok::<(), doorbell_splitc::RunError>(())
    /// ```
    ///
    /// # Errors
    /// When a heap has no room, the processes ask for different matrices, the type needs an
    /// alignment beyond 8 bytes, or a process has gone.
    pub async fn matrix<T: Element>(
        &self,
        rows: usize,
        columns: usize,
    ) -> Result<Matrix<T>, Error> {
        self.matrix_on(rows, columns, square(self.size())).await
    }

    /// Allocates a [matrix](Self::matrix) on a grid of processes that the program chooses: `grid`
    /// says how many rows and columns of blocks there are. A collective call: all processes await
    /// it.
    ///
    /// # Errors
    /// As [`matrix`](Self::matrix), and when the grid has not as many places as there are
    /// processes.
    pub async fn matrix_on<T: Element>(
        &self,
        rows: usize,
        columns: usize,
        grid: [usize; 2],
    ) -> Result<Matrix<T>, Error> {
        if grid[0].checked_mul(grid[1]) != Some(self.size()) {
            let ([down, across], size) = (grid, self.size());
            let why = format!(
                "a grid of {down} by {across} does not have {size} places, one for each process"
            );
            return Err(Error::invalid(why));
        }
        let shape = Shape::new([rows, columns], grid);
        let len = shape.block[0].checked_mul(shape.block[1]);
        let len = len.ok_or_else(|| Error::invalid("there are too many elements"))?;
        let agreed = [rows ^ grid[0].rotate_left(32), columns];
        let allocation = Allocation::new::<T>(self, len, agreed).await?;
        Ok(Matrix { allocation, shape, of: PhantomData })
    }
}

impl<T: Element> Matrix<T> {
    fn world(&self) -> &World {
        self.allocation.world()
    }

    /// How many rows the matrix has.
    pub fn rows(&self) -> usize {
        self.shape.size[0]
    }

    /// How many columns the matrix has.
    pub fn columns(&self) -> usize {
        self.shape.size[1]
    }

    /// The place of an element. If the row or the column is out of bounds, every operation on the
    /// place returns an error.
    #[inline]
    pub fn at(&self, row: usize, column: usize) -> Place<'_, T> {
        self.world().at(self.raw_pointer(row, column))
    }

    /// The pointer to an element.
    ///
    /// # Errors
    /// When there is no such element.
    pub fn pointer(&self, row: usize, column: usize) -> Result<GlobalPtr<T>, Error> {
        let [rows, columns] = self.shape.size;
        if row >= rows {
            return Err(AccessError::Index { index: row, len: rows }.into());
        }
        if column >= columns {
            return Err(AccessError::Index { index: column, len: columns }.into());
        }
        Ok(self.raw_pointer(row, column))
    }

    #[inline]
    fn raw_pointer(&self, row: usize, column: usize) -> GlobalPtr<T> {
        let [rows, columns] = self.shape.size;
        if row >= rows || column >= columns {
            let (index, len) = if row >= rows { (row, rows) } else { (column, columns) };
            let len = u32::try_from(len).unwrap_or(u32::MAX);
            return GlobalPtr::new(Raw { rank: len, block: BEYOND, offset: index as u64 });
        }
        let (rank, local) = self.shape.place(row, column);
        self.allocation.pointer(rank, local)
    }

    /// A span of elements in one row, all of which must be in the block of one process.
    ///
    /// # Errors
    /// When the elements are not all within the matrix, or not all in the block of one process.
    pub fn row(&self, row: usize, columns: std::ops::Range<usize>) -> Result<Span<'_, T>, Error> {
        let first = self.within([row..row.saturating_add(1), columns.clone()])?;
        Ok(self.world().span(first, columns.len()))
    }

    /// A span of elements in one column, all of which must be in the block of one process.
    ///
    /// # Errors
    /// When the elements are not all within the matrix, or not all in the block of one process.
    pub fn column(
        &self,
        rows: std::ops::Range<usize>,
        column: usize,
    ) -> Result<Span<'_, T>, Error> {
        let first = self.within([rows.clone(), column..column.saturating_add(1)])?;
        Ok(self.world().span(first, 1).strided(rows.len(), self.shape.block[1]))
    }

    /// The pointer to the first element of some rows and columns, which must be in the block of one
    /// process.
    fn within(&self, ranges: [std::ops::Range<usize>; 2]) -> Result<GlobalPtr<T>, Error> {
        let [rows, columns] = ranges;
        let first = self.pointer(rows.start, columns.start)?;
        if rows.is_empty() || columns.is_empty() {
            return Ok(first);
        }
        let last = self.pointer(rows.end - 1, columns.end - 1)?;
        match first.rank() == last.rank() {
            true => Ok(first),
            false => {
                let (one, other) = (first.rank(), last.rank());
                let why = format!("these elements are process {one}'s and process {other}'s");
                Err(Error::invalid(why))
            }
        }
    }

    /// The rank of the process that has an element.
    ///
    /// # Errors
    /// When there is no such element.
    pub fn owner(&self, row: usize, column: usize) -> Result<usize, Error> {
        Ok(self.pointer(row, column)?.rank())
    }

    /// How many rows and columns the block of this process has.
    pub fn own_size(&self) -> [usize; 2] {
        self.shape.own(self.world().rank())
    }

    /// The row and column in the matrix of the first element of this process's block.
    pub fn own_first(&self) -> [usize; 2] {
        self.shape.first(self.world().rank())
    }

    /// How many elements lie between the beginnings of two rows in the [own block](Self::private):
    /// as many as a whole block has columns.
    pub fn own_stride(&self) -> usize {
        self.shape.block[1]
    }

    /// Opens a private epoch, as [`Spread::private`](crate::Spread::private) does: each process has
    /// its own block for itself as a slice, row by row, with [`own_stride`](Self::own_stride)
    /// elements from one row to the next. A collective call: all processes await it.
    ///
    /// # Errors
    /// As [`Spread::private`](crate::Spread::private).
    pub async fn private(&self) -> Result<Private<'_, T>, Error> {
        Private::open(&self.allocation, self.own_elements()).await
    }

    /// How many elements of memory the own block takes.
    pub(super) fn own_elements(&self) -> usize {
        let [rows, columns] = self.own_size();
        if columns == 0 { 0 } else { rows * self.own_stride() }
    }

    pub(super) fn allocation(&self) -> &Allocation {
        &self.allocation
    }

    /// Ends a private epoch of the matrix. A collective call: all processes await it.
    ///
    /// # Errors
    /// As [`Spread::share`](crate::Spread::share).
    pub async fn share(&self) -> Result<(), Error> {
        self.allocation.share().await
    }

    /// Frees the matrix in every process's heap. A collective call: all processes await it.
    ///
    /// # Errors
    /// As [`Spread::free`](crate::Spread::free).
    pub async fn free(self) -> Result<(), Error> {
        self.allocation.free().await
    }
}

impl<T> fmt::Debug for Matrix<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Matrix").field("shape", &self.shape).finish_non_exhaustive()
    }
}
