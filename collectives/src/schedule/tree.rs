//! Binomial trees, for broadcasts, gathers, scatters and reductions.

use super::{ahead, behind};

/// A member's place in the binomial tree of a group, whose root may be any member.
///
/// The member's rank relative to the root, `v`, determines its place: the parent of `v` is `v` with
/// the lowest set bit cleared. So the members of a subtree have consecutive relative ranks.
#[derive(Clone, Copy, Debug)]
pub struct Tree {
    relative: usize,
    root: usize,
    size: usize,
}

/// A child of a member in a binomial tree.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Child {
    /// The rank of the child.
    pub rank: usize,
    /// The distance from the parent's relative rank to the child's.
    pub offset: usize,
    /// How many members the child's subtree has, the child included.
    pub members: usize,
}

impl Tree {
    /// The place of the member `rank` of `size` in the tree whose root is the member `root`.
    pub fn new(rank: usize, root: usize, size: usize) -> Self {
        Self { relative: behind(rank, root, size), root, size }
    }

    /// The rank of the member's parent; `None` at the root.
    pub fn parent(&self) -> Option<usize> {
        let relative = self.relative & self.relative.checked_sub(1)?;
        Some(ahead(relative, self.root, self.size))
    }

    /// How many members the subtree of this member has, the member itself included.
    pub fn members(&self) -> usize {
        self.below(self.relative)
    }

    /// The member's children, in ascending order of the sizes of their subtrees. Broadcasts go to
    /// them in the reverse order, so that the largest subtree begins first.
    pub fn children(&self) -> impl DoubleEndedIterator<Item = Child> + Send + use<> {
        let Self { relative, root, size } = *self;
        let place = *self;
        let bits = match relative {
            0 => super::rounds(size),
            _ => relative.trailing_zeros(),
        };
        (0..bits).map(|bit| 1 << bit).filter(move |offset| relative + offset < size).map(
            move |offset| Child {
                rank: ahead(relative + offset, root, size),
                offset,
                members: place.below(relative + offset),
            },
        )
    }

    /// How many members are in the subtree of the member of a relative rank, that member included.
    fn below(&self, relative: usize) -> usize {
        let all = self.size - relative;
        match relative {
            0 => all,
            _ => all.min(1 << relative.trailing_zeros()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::rounds;
    use super::*;

    fn each(test: impl Fn(usize, usize)) {
        (1..=33).flat_map(|size| (0..size).map(move |root| (size, root))).for_each(
            |(size, root)| {
                test(size, root);
            },
        );
    }

    #[test]
    fn a_broadcast_reaches_every_member_once_within_the_logarithm_of_rounds() {
        each(|size, root| {
            let mut has = vec![None; size];
            has[root] = Some(0);
            // Each member tells one child in a round, beginning with the round after it was told.
            let mut tellers = vec![root];
            while let Some(rank) = tellers.pop() {
                let since = has[rank].expect("it was told");
                let children = Tree::new(rank, root, size).children().rev();
                for (round, child) in (since + 1..).zip(children) {
                    assert_eq!(Tree::new(child.rank, root, size).parent(), Some(rank));
                    assert_eq!(has[child.rank].replace(round), None, "{size} members");
                    tellers.push(child.rank);
                }
            }
            let last = has.iter().map(|told| told.expect("all are told")).max();
            assert!(last <= Some(rounds(size)), "{size} members, {last:?}");
            assert_eq!(Tree::new(root, root, size).parent(), None);
        });
    }

    #[test]
    fn the_members_below_one_follow_each_other() {
        fn gathered(tree: Tree) -> Vec<usize> {
            let mut all = vec![ahead(tree.relative, tree.root, tree.size)];
            for child in tree.children() {
                assert_eq!(child.offset, all.len());
                let below = gathered(Tree::new(child.rank, tree.root, tree.size));
                assert_eq!(below.len(), child.members);
                all.extend(below);
            }
            assert_eq!(all.len(), tree.members());
            all
        }
        each(|size, root| {
            let expected: Vec<_> = (0..size).map(|at| (root + at) % size).collect();
            assert_eq!(gathered(Tree::new(root, root, size)), expected);
        });
    }
}
