//! Components of a part of the mesh, as one process finds them by itself.

use crate::mesh::Part;

/// Finds the components of a part, and writes to `labels`, for each node of the part, the least
/// number of a node that is in the same component.
pub fn find(part: &Part, labels: &mut [u32]) {
    for (place, label) in labels.iter_mut().enumerate() {
        *label = place as u32;
    }
    for (from, to) in part.inner_edges() {
        join(labels, from, to);
    }
    // A node's parent has a lesser number, so it has its label already.
    for place in 0..labels.len() {
        labels[place] = match labels[place] as usize {
            root if root == place => part.nodes.start + place as u32,
            parent => labels[parent],
        };
    }
}

/// Joins the trees of two nodes. The lesser root becomes the parent of the other.
fn join(parents: &mut [u32], one: u32, other: u32) {
    let (one, other) = (root(parents, one), root(parents, other));
    if one != other {
        parents[one.max(other) as usize] = one.min(other);
    }
}

/// The root of a node's tree. Halves the path that leads there.
fn root(parents: &mut [u32], mut node: u32) -> u32 {
    loop {
        let parent = parents[node as usize];
        if parent == node {
            return node;
        }
        let grandparent = parents[parent as usize];
        parents[node as usize] = grandparent;
        node = grandparent;
    }
}
