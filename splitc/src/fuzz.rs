//! What serves the messages of peers, for tests that give it arbitrary bytes. No part of the
//! interface.

use std::fmt;
use std::sync::Arc;

use doorbell_verbs::Region;

use crate::element::Element;
use crate::functions::Apply;
use crate::heap::{Guarded, Heap};
use crate::messages::Served;

/// A process's heap, and what carries out the operations of other processes there.
pub struct Server {
    heap: Heap,
    served: Arc<Served>,
}

impl Server {
    /// Makes a heap with `len` bytes for programs, behind those of the library itself.
    ///
    /// # Panics
    /// When the system has no memory for the heap.
    #[must_use]
    pub fn new(len: usize) -> Self {
        let heap = Heap::new(len).expect("memory for a heap");
        heap.allocate_alone(len as u64).expect("the heap is as long");
        let served = Served::new(heap.region().clone(), heap.guards.clone());
        Self { heap, served }
    }

    /// How many bytes in front of the program's are the library's own.
    pub const OWN: usize = crate::heap::CONTROL as usize;

    /// The memory of the heap, the library's own bytes in front.
    #[must_use]
    pub fn region(&self) -> &Region {
        self.heap.region()
    }

    /// Adds a function that messages may apply.
    pub fn define<T: Element, A: Element, R: Element>(&self, function: Apply<T, A, R>) {
        self.served.defines(function.erased());
    }

    /// Refuses a range of the heap to messages, until the returned value is dropped.
    #[must_use]
    pub fn guard(&self, from: u64, len: u64) -> impl Drop + '_ {
        let guarded: Guarded<'_> = self.heap.guards.guard(from, len);
        guarded
    }

    /// Carries out the entries of a message. Returns the values of the answer, and whether any
    /// operation was refused.
    #[must_use]
    pub fn serve(&self, entries: &[u8]) -> (Vec<u8>, bool) {
        let mut values = Vec::new();
        let refused = self.served.serve(entries, &mut values);
        (values, refused.any())
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").finish_non_exhaustive()
    }
}
