//! The parallel program: components of parts, which the processes merge together.

use doorbell::splitc::{Error, Spread, World};

use crate::alone;
use crate::mesh::Part;
use crate::spmd::Stopwatch;

/// Finds the components of the mesh of which each process has a part. `labels` has an element for
/// each node, on the process that has the node: in the end, the least number of a node that is in
/// the same component. Returns in how many rounds the processes merged components. A collective
/// call: all processes await it.
pub async fn find(
    world: &World,
    part: &Part,
    labels: &Spread<u32>,
    watch: &mut Stopwatch,
) -> Result<u32, Error> {
    let mut own = labels.private().await?;
    watch.compute(|| alone::find(part, &mut own));
    // From here on an edge is between components, which the numbers of their roots stand for. A
    // root's element of `labels` is the root under which its component is, or the root itself.
    let (mut edges, roots) = watch.compute(|| {
        let edge = |(place, far): (u32, u32)| Edge(own[place as usize], far);
        let edges: Vec<_> = part.outer_edges().map(edge).collect();
        // Edges from other processes lead to the first nodes of the part.
        let first = &own[..own.len().min(part.reach())];
        let mut roots: Vec<_> = edges.iter().map(|edge| edge.0).chain(first.to_vec()).collect();
        distinct(&mut roots);
        (edges, roots.into_iter().map(|root| root as usize).collect::<Vec<_>>())
    });
    drop(own);
    labels.share().await?;

    relabel(labels, &mut edges, watch).await?;
    let mut rounds = 0;
    while world.all_reduce(edges.len() as u64, |a, b| a + b).await? > 0 {
        hook(world, labels, &edges).await?;
        shorten(world, labels, &roots).await?;
        relabel(labels, &mut edges, watch).await?;
        rounds += 1;
    }

    let mut own = labels.private().await?;
    watch.compute(|| follow(&mut own, part.nodes.start));
    drop(own);
    labels.share().await?;
    Ok(rounds)
}

/// An edge between two components.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Edge(u32, u32);

/// Puts each component at the end of an edge under its least neighbour that is less than itself.
///
/// A component without a lesser neighbour stays a root. Then either neighbours were put under it,
/// or all of them were put under lesser ones, and the next round puts the component under one of
/// these: every two rounds at least halve the number of components that have edges.
async fn hook(world: &World, labels: &Spread<u32>, edges: &[Edge]) -> Result<(), Error> {
    for &Edge(one, other) in edges {
        labels.at(one.max(other) as usize).store_min(one.min(other))?;
    }
    world.all_store_sync().await
}

/// Leads each of this process's roots directly to the root under which its component is, by
/// pointer jumping: the way to there halves each time.
///
/// The processes need not jump at the same time. A root that another process has led farther
/// already is only nearer to the end.
async fn shorten(world: &World, labels: &Spread<u32>, roots: &[usize]) -> Result<(), Error> {
    let mut parents = labels.gather(roots)?.done().await?;
    loop {
        let places: Vec<_> = parents.iter().map(|&parent| parent as usize).collect();
        let grandparents = labels.gather(&places)?.done().await?;
        let has_moved = grandparents != parents;
        if has_moved {
            labels.scatter(roots, &grandparents)?.done().await?;
            parents = grandparents;
        }
        if world.all_reduce(u8::from(has_moved), u8::max).await? == 0 {
            return Ok(());
        }
    }
}

/// Replaces the ends of edges by the roots under which they are now. Edges within one component
/// go, and so do edges that are there twice.
async fn relabel(
    labels: &Spread<u32>,
    edges: &mut Vec<Edge>,
    watch: &mut Stopwatch,
) -> Result<(), Error> {
    // Many edges lead to the same component: each is asked for once.
    let places = watch.compute(|| {
        let mut ends: Vec<_> = edges.iter().flat_map(|edge| [edge.0, edge.1]).collect();
        distinct(&mut ends);
        ends.into_iter().map(|end| end as usize).collect::<Vec<_>>()
    });
    let found = labels.gather(&places)?.done().await?;
    watch.compute(|| {
        let label = |end: u32| found[places.binary_search(&(end as usize)).expect("asked for")];
        for edge in edges.iter_mut() {
            let (one, other) = (label(edge.0), label(edge.1));
            *edge = Edge(one.min(other), one.max(other));
        }
        edges.retain(|edge| edge.0 != edge.1);
        distinct(edges);
    });
    Ok(())
}

/// Gives each node of a part, whose first node is `first`, the label that its root has got. The
/// other processes' nodes have theirs from their own roots.
fn follow(labels: &mut [u32], first: u32) {
    for place in 0..labels.len() {
        // A root of this part is no greater than its nodes, and so has its last label already.
        let root = labels[place].checked_sub(first);
        if let Some(&label) = root.and_then(|root| labels.get(root as usize)) {
            labels[place] = label;
        }
    }
}

/// Sorts a list, and removes what is there twice.
fn distinct<T: Ord>(list: &mut Vec<T>) {
    list.sort_unstable();
    list.dedup();
}
