//! The graph: a mesh of two or three dimensions, of whose edges some are missing at random.

use std::ops::Range;

use crate::spmd::Random;

/// The parameters of a random mesh. Meshes with equal parameters are equal, so a process can make
/// its own part of the mesh without the others.
#[derive(Clone, Copy, Debug)]
pub struct Mesh {
    /// How many nodes are along each dimension.
    pub side: u32,
    /// How many dimensions the mesh has: at most 8.
    pub dimensions: u32,
    /// How many per cent of the edges are there.
    pub percent: u64,
    pub seed: u64,
}

/// Nodes of a mesh with consecutive numbers, and their edges to nodes with greater numbers.
pub struct Part {
    /// The numbers of the nodes.
    pub nodes: Range<u32>,
    /// The edges of each node: bit `d` says whether there is an edge to the next node along
    /// dimension `d`.
    edges: Vec<u8>,
    /// How much greater the number of the next node along each dimension is.
    steps: Vec<u32>,
}

impl Mesh {
    /// How many nodes there are, unless they are too many for numbers of 32 bits.
    pub fn nodes(&self) -> Option<u32> {
        self.side.checked_pow(self.dimensions)
    }

    /// Makes the part of the mesh that has the nodes with the given numbers.
    pub fn part(&self, nodes: Range<u32>) -> Part {
        let edges = nodes.clone().map(|node| self.edges(node)).collect();
        let steps = (0..self.dimensions).map(|dimension| self.side.pow(dimension)).collect();
        Part { nodes, edges, steps }
    }

    /// The edges of a node, as in [`Part::edges`].
    fn edges(&self, node: u32) -> u8 {
        let mut random = Random::new(&[self.seed, u64::from(node)]);
        let mut edges = 0;
        let mut rest = node;
        for dimension in 0..self.dimensions {
            let is_last = rest % self.side == self.side - 1;
            rest /= self.side;
            let is_there = random.below(100) < self.percent && !is_last;
            edges |= u8::from(is_there) << dimension;
        }
        edges
    }
}

impl Part {
    /// All edges between nodes of the part: both ends, the lesser one first, as places among the
    /// nodes of the part.
    pub fn inner_edges(&self) -> impl Iterator<Item = (u32, u32)> {
        let count = self.nodes.end - self.nodes.start;
        self.edges_from(0).filter(move |&(_, to)| to < count)
    }

    /// All edges that lead to nodes of other parts: the place of the end that is in this part, and
    /// the number of the other end.
    pub fn outer_edges(&self) -> impl Iterator<Item = (u32, u32)> {
        let (first, count) = (self.nodes.start, self.nodes.end - self.nodes.start);
        // Farther from the end than the longest step, nodes have no such edges.
        let from = count.saturating_sub(self.reach() as u32);
        let outer = self.edges_from(from).filter(move |&(_, to)| to >= count);
        outer.map(move |(place, to)| (place, first + to))
    }

    /// How much greater the number of a node's neighbour is at most. Only so many nodes at each end
    /// of a part have neighbours in other parts.
    pub fn reach(&self) -> usize {
        self.steps.last().map_or(0, |&step| step as usize)
    }

    /// The edges of the nodes from one place on. Both ends are distances from the first node.
    fn edges_from(&self, from: u32) -> impl Iterator<Item = (u32, u32)> {
        let places = from..self.nodes.end - self.nodes.start;
        places.flat_map(move |place| {
            let edges = self.edges[place as usize];
            let there = self.steps.iter().enumerate().filter(move |(d, _)| edges >> d & 1 == 1);
            there.map(move |(_, step)| (place, place + step))
        })
    }
}
