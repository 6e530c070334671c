//! A process's part of a field: its own nodes, and ghosts of those nodes of other processes that
//! its own nodes have as neighbours.

use doorbell::splitc::{Error, GlobalPtr, Spread, World};

use crate::graph::{Edges, Kind, Part, Shape};

/// The nodes of one kind, as one process sees them.
///
/// Weights, edges and values are plain vectors of the process. Only what crosses to other processes
/// is in shared memory: the values that other processes read, and the room into which they store.
pub struct Field {
    pub world: World,
    /// How many nodes of the field this process has.
    pub own: usize,
    /// The values of the process's own nodes, and behind them those of the ghosts.
    pub values: Vec<f64>,
    /// The edges of the own nodes. They lead to places in the `values` of the other field.
    pub edges: Edges,
    /// The pointers to where the ghosts' nodes are published, in the order of the ghosts.
    pub ghosts: Vec<GlobalPtr<f64>>,
    /// The values of all processes' nodes, as their owners have published them last.
    pub published: Spread<f64>,
    /// Room for the ghosts of each process, into which the owners of the nodes store.
    pub room: Spread<f64>,
    /// How many elements of `room` each process has.
    pub room_each: usize,
    /// The nodes whose values other processes need, by process.
    pub needed: Vec<Needed>,
    initial: Vec<f64>,
}

/// Nodes of this process that are ghosts at one other process.
pub struct Needed {
    /// The places of the nodes among this process's own values.
    pub nodes: Vec<u32>,
    /// The pointer to the other process's room for the first of the ghosts. The other ghosts follow
    /// in the order of `nodes`.
    pub ghosts: GlobalPtr<f64>,
}

/// Makes this process's part of both fields. A collective call: all processes await it.
pub async fn fields(world: &World, shape: &Shape) -> Result<[Field; 2], Error> {
    let mut electric = shape.part(Kind::Electric, world.rank());
    let mut magnetic = shape.part(Kind::Magnetic, world.rank());
    let magnetic_ghosts = find_ghosts(&mut electric.edges.neighbours, shape, world.rank());
    let electric_ghosts = find_ghosts(&mut magnetic.edges.neighbours, shape, world.rank());
    Ok([
        Field::new(world, shape, electric, &electric_ghosts).await?,
        Field::new(world, shape, magnetic, &magnetic_ghosts).await?,
    ])
}

/// Finds the neighbours that other processes have, and returns their numbers in ascending order, so
/// that the neighbours of one process are side by side. Replaces the numbers of all `neighbours` by
/// places in [`Field::values`].
fn find_ghosts(neighbours: &mut [u32], shape: &Shape, rank: usize) -> Vec<u32> {
    let first = (rank * shape.nodes) as u32;
    let own = first..first + shape.nodes as u32;
    let mut ghosts = neighbours.to_vec();
    ghosts.retain(|node| !own.contains(node));
    ghosts.sort_unstable();
    ghosts.dedup();
    for node in neighbours {
        *node = match ghosts.binary_search(node) {
            Ok(ghost) => (shape.nodes + ghost) as u32,
            Err(_) => *node - first,
        };
    }
    ghosts
}

impl Field {
    async fn new(world: &World, shape: &Shape, part: Part, ghosts: &[u32]) -> Result<Self, Error> {
        let (own, size) = (shape.nodes, world.size());
        let published = world.blocked(own * size).await?;
        let room_each = world.all_reduce(ghosts.len(), usize::max).await?;
        let room = world.blocked(room_each * size).await?;
        let mut field = Self {
            world: world.clone(),
            own,
            values: vec![0.0; own + ghosts.len()],
            edges: part.edges,
            ghosts: Vec::with_capacity(ghosts.len()),
            published,
            room,
            room_each,
            needed: Vec::new(),
            initial: part.values,
        };
        for &node in ghosts {
            field.ghosts.push(field.published.pointer(node as usize)?);
        }
        field.exchange_needs(ghosts).await?;
        Ok(field)
    }

    /// Tells the other processes which of their nodes are ghosts here, and learns which nodes of
    /// this process are ghosts elsewhere. A collective call: all processes await it.
    async fn exchange_needs(&mut self, ghosts: &[u32]) -> Result<(), Error> {
        if self.room_each == 0 {
            return Ok(());
        }
        let world = self.world.clone();
        let room = self.room.pointer(world.rank() * self.room_each)?;
        let (mut nodes, mut rooms) = (Vec::new(), Vec::new());
        for owner in 0..world.size() {
            let numbers = owner * self.own..(owner + 1) * self.own;
            let [from, to] = [numbers.start, numbers.end]
                .map(|bound| ghosts.partition_point(|&node| (node as usize) < bound));
            let places = ghosts[from..to].iter().map(|&node| node - numbers.start as u32);
            nodes.push(places.collect::<Vec<_>>());
            rooms.push(room.local_add(from as isize));
        }
        let nodes = world.all_to_all_vec(&nodes).await?;
        let rooms = world.all_to_all(&rooms).await?;
        let needed = nodes.into_iter().zip(rooms);
        self.needed = needed
            .filter(|(nodes, _)| !nodes.is_empty())
            .map(|(nodes, ghosts)| Needed { nodes, ghosts })
            .collect();
        Ok(())
    }

    /// Sets the values of all own nodes to those before the first step.
    pub fn reset(&mut self) {
        self.values[..self.own].copy_from_slice(&self.initial);
    }

    /// Computes the values of the own nodes after half a step, from the values of the other field
    /// and its ghosts.
    pub fn update(&mut self, other: &Self) {
        self.edges.update(&mut self.values[..self.own], &other.values);
    }

    /// Collects the values of all processes' nodes at process 0; the other processes get none. A
    /// collective call: all processes await it.
    pub async fn collect(&self) -> Result<Vec<f64>, Error> {
        let parts = self.world.gather_vec(0, &self.values[..self.own]).await?;
        Ok(parts.unwrap_or_default().concat())
    }

    /// Publishes the values of this process's nodes, and waits until all processes have published
    /// theirs. A collective call: all processes await it.
    pub async fn publish(&self) -> Result<(), Error> {
        let own = self.published.pointer(self.world.rank() * self.own)?;
        self.world.span(own, self.own).write(&self.values[..self.own]).await?;
        self.world.barrier().await
    }
}
