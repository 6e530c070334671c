//! The calls of collectives, and what those of all members must have in common.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use crate::operation::Operation;

/// How many calls a member remembers, to say which one of them another member has made otherwise.
const REMEMBERED: usize = 16;

/// A collective as a member has called it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Call {
    /// The kind of the collective.
    pub operation: Operation,
    /// The rank of the root, if the collective has one.
    pub root: Option<usize>,
    /// The length of an element in bytes, if the collective combines elements.
    pub element: Option<usize>,
    /// A digest of the type of the elements, which members that meet nobody in this collective find
    /// out to differ in later ones.
    pub of_type: u32,
}

impl Call {
    /// The call of a collective without a root and without elements.
    pub const fn of(operation: Operation) -> Self {
        Self { operation, root: None, element: None, of_type: 0 }
    }

    /// The call of a collective that has a root, and no elements.
    pub const fn at(operation: Operation, root: usize) -> Self {
        Self { root: Some(root), ..Self::of(operation) }
    }
}

/// The root and the elements of a call, in the 24 bits that messages have for them: 16 for the
/// root, and 8 for the length of an element. A call without one of them has in its place a digest
/// of the calls before, so that members which have called different collectives find that out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Common(u32);

impl Common {
    pub fn bits(self) -> u32 {
        self.0
    }

    pub fn of_bits(bits: u32) -> Self {
        Self(bits & 0xFF_FFFF)
    }

    /// Returns the rank of the root, if the call has one.
    pub fn root(self) -> usize {
        (self.0 >> 8) as usize
    }

    /// Returns the length of an element, if the call has elements. The longest length that the bits
    /// can tell stands for all longer ones.
    pub fn element(self) -> usize {
        (self.0 & 0xFF) as usize
    }
}

/// The collectives that a member has called.
#[derive(Default, Debug)]
pub struct Calls(Mutex<History>);

#[derive(Default, Debug)]
struct History {
    /// The number of the next call.
    next: u32,
    /// A digest of all calls.
    digest: u32,
    /// The last calls with their numbers, the latest one first.
    last: VecDeque<Numbered>,
}

/// A call that has its place among those of the program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Numbered {
    pub operation: Operation,
    pub number: u32,
    pub common: Common,
}

impl Calls {
    /// Gives a call its number.
    pub fn add(&self, call: Call) -> Numbered {
        let mut history = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let history = &mut *history;
        let root = call.root.map_or(history.digest >> 16, |root| root as u32 & 0xFFFF);
        let element = call.element.map_or(history.digest >> 8 & 0xFF, |len| len.min(0xFF) as u32);
        let common = Common(root << 8 | element);
        let numbered = Numbered { operation: call.operation, number: history.next, common };
        history.next = history.next.wrapping_add(1);
        // The bits of a call without a root follow from the calls before, which the digest has.
        let mixed = u64::from(common.0 ^ call.of_type) << 4 | call.operation.code();
        let mixed = (u64::from(history.digest) << 32 | mixed).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        history.digest = (mixed ^ mixed >> 32) as u32 ^ (mixed >> 32) as u32 >> 7;
        history.last.truncate(REMEMBERED - 1);
        history.last.push_front(numbered);
        numbered
    }

    /// Returns the last calls before the one of a number, the latest one first.
    pub fn before(&self, number: u32) -> Vec<Numbered> {
        let history = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let last = history.last.iter().copied();
        last.filter(|call| (number.wrapping_sub(call.number) as i32) > 0).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BARRIER: Call =
        Call { operation: Operation::Barrier, root: None, element: None, of_type: 0 };
    const BROADCAST: Call = Call { operation: Operation::Broadcast, root: Some(3), ..BARRIER };
    const REDUCE: Call = Call {
        operation: Operation::Reduce,
        root: Some(65_535),
        element: Some(254),
        of_type: u32::MAX,
    };

    #[test]
    fn calls_of_the_same_collectives_have_the_same_in_common() {
        let members = [Calls::default(), Calls::default()];
        for call in [BROADCAST, BARRIER, REDUCE, BARRIER, BARRIER] {
            let [one, other] = members.each_ref().map(|calls| calls.add(call));
            assert_eq!(one, other);
            assert!(call.root.is_none_or(|root| one.common.root() == root), "{one:?}");
            assert!(call.element.is_none_or(|len| one.common.element() == len), "{one:?}");
        }
    }

    #[test]
    fn a_call_that_was_different_shows_in_those_after() {
        let members: [Calls; 3] = std::array::from_fn(|_| Calls::default());
        members[0].add(BROADCAST);
        members[1].add(Call { root: Some(2), ..BROADCAST });
        members[2].add(BARRIER);
        for _ in 0..100 {
            let [one, two, three] = members.each_ref().map(|calls| calls.add(BARRIER).common);
            assert!(one != two && two != three && three != one, "{one:?} {two:?} {three:?}");
        }
    }

    #[test]
    fn the_last_calls_are_remembered() {
        let calls = Calls::default();
        (0..100).for_each(|_| assert_eq!(calls.add(BARRIER).operation, Operation::Barrier));
        let numbers: Vec<_> = calls.before(98).iter().map(|call| call.number).collect();
        assert_eq!(numbers, (84..98).rev().collect::<Vec<_>>());
    }
}
