//! The graph: nodes of the electric and of the magnetic field, with edges between the two kinds.

use crate::spmd::Random;

/// The kind of a node: electric or magnetic. The neighbours of a node are of the other kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Electric,
    Magnetic,
}

/// The parameters of a random graph. Graphs with equal parameters are equal, so a process can make
/// its own part of the graph without the others.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    pub processes: usize,
    /// How many nodes of each kind a process has.
    pub nodes: usize,
    /// How many neighbours each node has.
    pub degree: usize,
    /// How many per cent of the edges lead to a node of another process.
    pub remote: u64,
    pub seed: u64,
}

/// Nodes of one kind, and their edges.
///
/// Nodes have numbers that count through all processes: process `p` has the nodes from
/// `p * shape.nodes` on.
pub struct Part {
    /// The initial values of the nodes.
    pub values: Vec<f64>,
    pub edges: Edges,
}

/// The edges of nodes that have the same number of neighbours each.
pub struct Edges {
    degree: usize,
    /// The neighbours of the first node, then those of the second node, and so on.
    pub neighbours: Vec<u32>,
    /// A weight for each neighbour.
    weights: Vec<f64>,
}

impl Shape {
    /// The nodes of a kind that process `rank` has, and their edges to nodes by number.
    pub fn part(&self, kind: Kind, rank: usize) -> Part {
        let mut random = Random::new(&[self.seed, kind as u64, rank as u64]);
        let values = (0..self.nodes).map(|_| unit(&mut random)).collect();
        let count = self.nodes * self.degree;
        let neighbours = (0..count).map(|_| self.neighbour(rank, &mut random)).collect();
        // Small weights, half of them negative: the values neither explode nor vanish.
        let weight = |random: &mut Random| (2.0 * unit(random) - 1.0) / self.degree as f64;
        let weights = (0..count).map(|_| weight(&mut random)).collect();
        Part { values, edges: Edges { degree: self.degree, neighbours, weights } }
    }

    /// A random neighbour of a node that process `rank` has.
    fn neighbour(&self, rank: usize, random: &mut Random) -> u32 {
        let leaves = self.processes > 1 && random.below(100) < self.remote;
        let distance =
            if leaves { 1 + random.below(self.processes as u64 - 1) as usize } else { 0 };
        let owner = (rank + distance) % self.processes;
        (owner * self.nodes) as u32 + random.below(self.nodes as u64) as u32
    }

    /// All nodes of a kind in the whole graph, and their edges.
    pub fn whole(&self, kind: Kind) -> Part {
        let mut whole = self.part(kind, 0);
        for rank in 1..self.processes {
            let part = self.part(kind, rank);
            whole.values.extend(part.values);
            whole.edges.neighbours.extend(part.edges.neighbours);
            whole.edges.weights.extend(part.edges.weights);
        }
        whole
    }
}

impl Edges {
    /// The neighbours and weights of each node, node by node.
    pub fn of_nodes(&self) -> impl Iterator<Item = (&[u32], &[f64])> {
        let neighbours = self.neighbours.chunks_exact(self.degree);
        neighbours.zip(self.weights.chunks_exact(self.degree))
    }

    /// Subtracts from the value of each node the weighted sum of its neighbours' values: what half
    /// a step of the simulation computes. `from` has the values of all neighbours, by their
    /// numbers.
    pub fn update(&self, values: &mut [f64], from: &[f64]) {
        for (value, (neighbours, weights)) in values.iter_mut().zip(self.of_nodes()) {
            let mut sum = 0.0;
            for (&neighbour, weight) in neighbours.iter().zip(weights) {
                sum += weight * from[neighbour as usize];
            }
            *value -= sum;
        }
    }
}

/// A random number from 0 up to, and not including, 1.
fn unit(random: &mut Random) -> f64 {
    (random.bits() >> 11) as f64 / (1_u64 << 53) as f64
}
