//! Collective allocations of the symmetric heap: the same range of every process's heap.

use std::cell::Cell;
use std::fmt;

use crate::collectives::{About, differs};
use crate::element::Element;
use crate::error::{Error, ErrorKind, HeapError};
use crate::global_ptr::{GlobalPtr, Raw};
use crate::heap::Stand;
use crate::world::{World, bytes_of};

/// A collective allocation, in which a distributed array lies.
pub(crate) struct Allocation {
    world: World,
    pub number: u32,
    from: u64,
    /// How many bytes an element has.
    size: u64,
    /// Whether the process has its part as a slice at present.
    pub lent: Cell<bool>,
    /// Whether the process is opening or closing a private epoch, or freeing the allocation.
    changing: Cell<bool>,
    /// The memory for copies of the process's part, from one private epoch to the next.
    pub spare: Cell<Vec<u64>>,
}

/// A guard during whose life a process does not begin another change of an allocation.
pub(super) struct Changing<'a>(&'a Cell<bool>);

impl Drop for Changing<'_> {
    fn drop(&mut self) {
        self.0.set(false);
    }
}

impl Allocation {
    /// Allocates room for `len` elements, all zeros, in every process's heap. The processes must
    /// agree on the length, the type and the `shape`. A collective call: all processes await it.
    pub async fn new<T: Element>(
        world: &World,
        len: usize,
        shape: [usize; 2],
    ) -> Result<Self, Error> {
        let core = &*world.0;
        let bytes = bytes_of::<T>(len)?;
        let name = std::any::type_name::<T>();
        // The memory is there, and zeroed, before any process has a pointer to it.
        let own = core.heap.take_zeros(bytes);
        let place = *own.as_ref().unwrap_or(&u64::MAX);
        let [one, other] = shape.map(|number| number as u64);
        let numbers = [one, other, size_of::<T>() as u64, hash(name), place];
        let differs = differs(world, About::Allocation, numbers).await;
        let differs = match (differs, own) {
            (Ok(None), Ok(_)) => Ok(()),
            (Ok(None | Some(4)), Err(why)) => Err(why.into()),
            (differs, own) => {
                if let Ok(from) = own {
                    core.heap.give(from, bytes);
                }
                differs
                    .map(|at| match at.unwrap_or(4) {
                        // Another process has no room at this place.
                        4 => HeapError::FullElsewhere { asked: bytes },
                        at => {
                            let what = [
                                "the length",
                                "the length of a block or row",
                                "the size of the type",
                                "the type",
                            ];
                            let here = format!("{one} by {other} elements of {name}");
                            HeapError::Differs { what: what[at], here }
                        }
                    })
                    .and_then(|why| Err(why.into()))
            }
        };
        differs?;
        let number = core.heap.blocks.add(place, bytes);
        let (size, lent) = (size_of::<T>() as u64, Cell::new(false));
        let (changing, spare) = (Cell::new(false), Cell::default());
        Ok(Self { world: world.clone(), number, from: place, size, lent, changing, spare })
    }

    pub fn world(&self) -> &World {
        &self.world
    }

    /// The offset in each process's heap at which the allocation begins.
    pub fn from(&self) -> u64 {
        self.from
    }

    /// The pointer to the element at position `local` in the part of process `rank`.
    #[inline]
    pub fn pointer<T>(&self, rank: usize, local: usize) -> GlobalPtr<T> {
        let offset = self.from + local as u64 * self.size;
        GlobalPtr::new(Raw { rank: rank as u32, block: self.number, offset })
    }

    /// The position, in its process's part, of the element that a pointer points to; `None` if the
    /// pointer does not point to an element of this allocation.
    pub fn local_of<T>(&self, ptr: GlobalPtr<T>) -> Option<usize> {
        let Raw { block, offset, .. } = ptr.raw();
        let past = offset.checked_sub(self.from).filter(|_| block == self.number)?;
        let whole = self.size > 0 && past.is_multiple_of(self.size);
        whole.then(|| (past / self.size) as usize)
    }

    /// Begins a change of the allocation, which must not overlap with another change by this
    /// process, nor with the life of its slice.
    pub(super) fn change(&self) -> Result<Changing<'_>, Error> {
        if self.lent.get() {
            let why = "this process has its part as a slice: drop that `Private` first";
            return Err(Error::invalid(why));
        }
        if self.changing.replace(true) {
            let why = "another `private`, `share` or `free` of this array is still under way in this \
                       process: await that first";
            return Err(Error::invalid(why));
        }
        Ok(Changing(&self.changing))
    }

    /// Ends a private epoch. If there is none, the call only waits for all processes.
    pub async fn share(&self) -> Result<(), Error> {
        let _changing = self.change()?;
        // A process that has passed this agreement may access the parts of others, which have
        // dropped their slices by then.
        self.agree(Step::Share, true).await?;
        self.world.0.heap.blocks.set(self.number, Stand::Shared);
        Ok(())
    }

    /// Makes the parts of all processes private: from then on no process accesses the part of
    /// another. If a process is not `ready`, the parts stay as they were before, which is an
    /// error for all.
    pub async fn close(&self, ready: bool) -> Result<(), Error> {
        self.shut(Stand::Private, Step::Close, ready).await
    }

    /// Ends all accesses by pointers, in agreement with all processes. If the processes do
    /// different things, or one of them is not ready, the access stays as it was before.
    async fn shut(&self, stand: Stand, step: Step, ready: bool) -> Result<(), Error> {
        let (core, blocks) = (&*self.world.0, &self.world.0.heap.blocks);
        let before = blocks.get(self.number).map_or(Stand::Freed, |block| block.stand);
        // From here on this process begins no access to the allocation, and the accesses that it
        // has begun are done before the others are told so.
        blocks.set(self.number, stand);
        core.all_done().await.inspect_err(|_| blocks.set(self.number, before))?;
        self.agree(step, ready).await.inspect_err(|why| {
            // All processes see that they differ. After any other failure, such as the death of a
            // process, another may have succeeded and have its part as a slice: then pointers stay
            // refused.
            if let ErrorKind::Heap(HeapError::Differs { .. }) = why.kind() {
                blocks.set(self.number, before);
            }
        })
    }

    /// Waits until all processes take the same step with the same allocation, and are ready to.
    async fn agree(&self, step: Step, ready: bool) -> Result<(), Error> {
        let here = || format!("allocation {}, to {step}", self.number);
        let refused = |what| Err(HeapError::Differs { what, here: here() }.into());
        // No process that is not ready passes the same number as another.
        let unready = if ready { 0 } else { 1 + self.world.rank() as u64 };
        let numbers = [self.number.into(), step as u64, unready];
        match differs(&self.world, About::Change, numbers).await? {
            Some(0) => refused("the allocation"),
            Some(1) => refused("what is done with it"),
            None if ready => Ok(()),
            _ => refused("whether there is memory for a copy of the own part"),
        }
    }

    /// Frees the allocation in every process's heap. A collective call: all processes await it.
    pub async fn free(self) -> Result<(), Error> {
        let _changing = self.change()?;
        self.shut(Stand::Freed, Step::Free, true).await?;
        let heap = &self.world.0.heap;
        if let Some(block) = heap.blocks.get(self.number) {
            heap.give(block.from, block.len);
        }
        Ok(())
    }
}

/// A change of an allocation that all processes make together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    Close,
    Share,
    Free,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Close => "make it private",
            Self::Share => "share it again",
            Self::Free => "free it",
        })
    }
}

/// A hash of a name, by which processes compare names.
pub(crate) fn hash(name: &str) -> u64 {
    // FNV-1a gives the same hash in every process.
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
