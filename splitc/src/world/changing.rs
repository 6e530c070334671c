//! Atomic changes of mapped memory that nobody waits for, a few of which are kept for a moment.
//!
//! The word of such a change is mostly in the cache of another processor, or in none, and an atomic
//! instruction waits for it. So the processor is asked to fetch the word first, and the change is
//! made some changes later, when the word is there: many words are on their way at a time.

use doorbell_verbs::Region;

use super::Core;
use super::deferred::{Later, MOST};
use crate::atomics::Change;
use crate::peers::Peer;

impl Core {
    /// Changes a number in mapped memory soon: at the latest when the peer is told of what was
    /// stored. The place must have been checked.
    #[inline]
    pub fn change_soon(
        &self,
        (peer, memory): (&Peer, &Region),
        (change, operand): (Change, u64),
        offset: usize,
    ) {
        memory.prefetch_to_write(offset);
        let later = Later { change, rank: peer.rank as u32, offset: offset as u64, operand };
        let mut deferred = self.deferred.borrow_mut();
        let at = deferred.next % MOST;
        deferred.next = at + 1;
        if let Some(due) = deferred.changes[at].replace(later) {
            self.make(due);
        }
    }

    /// Whether changes are kept.
    pub fn has_changes(&self) -> bool {
        self.deferred.borrow().changes.iter().any(Option::is_some)
    }

    /// Makes all changes that are kept.
    pub fn make_changes(&self) {
        let mut deferred = self.deferred.borrow_mut();
        let next = deferred.next;
        for at in 0..MOST {
            if let Some(due) = deferred.changes[(next + at) % MOST].take() {
                self.make(due);
            }
        }
    }

    #[inline]
    fn make(&self, Later { change, rank, offset, operand }: Later) {
        let memory = self.peers[rank as usize].memory.as_ref().expect("it is mapped");
        change.apply(memory, offset as usize, [operand; 2]).expect("the place was checked");
    }
}
