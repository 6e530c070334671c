//! The distribution of an array's elements over processes.

/// The layout of a block-cyclic distribution. Elements are dealt to the processes in blocks, one
/// block to each, and then again from the first process on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Layout {
    pub len: usize,
    processes: usize,
    block: usize,
    /// The base-two logarithms of the number of processes and of the block length, if both are
    /// powers of two: then shifts take the place of divisions.
    shifts: Option<(u32, u32)>,
}

impl Layout {
    /// A layout of `len` elements over `processes`, with blocks of at least one element.
    pub fn new(len: usize, processes: usize, block: usize) -> Self {
        let both = processes.is_power_of_two() && block.is_power_of_two();
        let shifts = both.then(|| (processes.trailing_zeros(), block.trailing_zeros()));
        Self { len, processes, block, shifts }
    }

    /// The rank of the process that has an element, and the element's position in that process's
    /// part.
    #[inline]
    pub fn place(&self, index: usize) -> (usize, usize) {
        if let Some((processes, block)) = self.shifts {
            let number = index >> block;
            let within = index & (self.block - 1);
            return (number & (self.processes - 1), (number >> processes << block) + within);
        }
        let (number, within) = (index / self.block, index % self.block);
        (number % self.processes, number / self.processes * self.block + within)
    }

    /// The index of the element at position `local` in the part of process `rank`.
    #[inline]
    pub fn index(&self, rank: usize, local: usize) -> usize {
        let (round, within) = (local / self.block, local % self.block);
        (round * self.processes + rank) * self.block + within
    }

    /// How many elements a process has.
    pub fn count(&self, rank: usize) -> usize {
        let whole = self.len / self.block;
        let rounds = whole / self.processes;
        let rest = whole % self.processes;
        let last = self.len % self.block;
        rounds * self.block
            + match rank {
                _ if rank < rest => self.block,
                _ if rank == rest => last,
                _ => 0,
            }
    }

    /// The most elements that any process has.
    pub fn most(&self) -> usize {
        self.count(0)
    }
}

#[cfg(test)]
mod tests {
    use super::Layout;

    #[test]
    fn every_element_has_a_place_of_its_own_and_every_place_its_element() {
        for (len, processes, block) in [
            (0, 3, 1),
            (1, 1, 1),
            (17, 4, 1),
            (17, 4, 2),
            (64, 4, 4),
            (100, 7, 3),
            (100, 7, 15),
            (5, 8, 1),
        ] {
            let layout = Layout::new(len, processes, block);
            let mut seen = vec![vec![]; processes];
            for index in 0..len {
                let (rank, local) = layout.place(index);
                assert_eq!(layout.index(rank, local), index);
                seen[rank].push(local);
            }
            for (rank, seen) in seen.iter().enumerate() {
                let expected: Vec<_> = (0..layout.count(rank)).collect();
                assert_eq!(*seen, expected, "{layout:?} of {rank}");
                assert!(layout.count(rank) <= layout.most());
            }
        }
    }
}
