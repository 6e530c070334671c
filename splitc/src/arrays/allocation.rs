//! Collective allocations: the same range of every process's heap.

use std::cell::Cell;

use crate::element::Element;
use crate::error::{Error, HeapError};
use crate::global_ptr::{GlobalPtr, Raw};
use crate::heap::Stand;
use crate::world::{World, bytes_of};

/// A collective allocation, as the array that lies there knows it.
pub(crate) struct Allocation {
    world: World,
    pub number: u32,
    from: u64,
    /// How many bytes an element has.
    size: u64,
    /// Whether this process has its part as a slice.
    pub lent: Cell<bool>,
}

/// The position of the first number that differs between the processes, if one does. All processes
/// await this.
pub(crate) async fn differs<const N: usize>(
    world: &World,
    numbers: [u64; N],
) -> Result<Option<usize>, Error> {
    // Of each number the least and the greatest.
    let all = world
        .all_reduce([numbers; 2], |[least, greatest]: [[u64; N]; 2], [low, high]| {
            [
                std::array::from_fn(|at| least[at].min(low[at])),
                std::array::from_fn(|at| greatest[at].max(high[at])),
            ]
        })
        .await?;
    let [least, greatest] = all;
    Ok((0..N).find(|&at| least[at] != greatest[at]))
}

impl Allocation {
    /// Allocates room for `len` elements of every process, all zeros. The processes must agree on
    /// the `shape`, too. All processes await this.
    pub async fn new<T: Element>(
        world: &World,
        len: usize,
        shape: [usize; 2],
    ) -> Result<Self, Error> {
        let core = &*world.0;
        let bytes = bytes_of::<T>(len)?;
        let name = std::any::type_name::<T>();
        // Memory is there, and zeros, before anybody has a pointer to it.
        let own = core.heap.take_zeros(bytes);
        let place = *own.as_ref().unwrap_or(&u64::MAX);
        let [one, other] = shape.map(|number| number as u64);
        let numbers = [one, other, size_of::<T>() as u64, hash(name), place];
        let differs = differs(world, numbers).await;
        let differs = match (differs, own) {
            (Ok(None), Ok(_)) => Ok(()),
            (Ok(None | Some(4)), Err(why)) => Err(why.into()),
            (differs, own) => {
                if let Ok(from) = own {
                    core.heap.give(from, bytes);
                }
                differs
                    .map(|at| match at.unwrap_or(4) {
                        // Another process has no room there.
                        4 => HeapError::Full { asked: bytes, heap: core.heap.len(), free: 0 },
                        at => {
                            let what =
                                ["the length", "the block", "the size of the type", "the type"];
                            let here = format!("{one} and {other} of {name}");
                            HeapError::Differs { what: what[at], here }
                        }
                    })
                    .and_then(|why| Err(why.into()))
            }
        };
        differs?;
        let number = core.heap.blocks.add(place, bytes);
        let (size, lent) = (size_of::<T>() as u64, Cell::new(false));
        Ok(Self { world: world.clone(), number, from: place, size, lent })
    }

    pub fn world(&self) -> &World {
        &self.world
    }

    /// Where it begins in the heap.
    pub fn from(&self) -> u64 {
        self.from
    }

    /// The pointer to an element of a process.
    #[inline]
    pub fn pointer<T>(&self, rank: usize, local: usize) -> GlobalPtr<T> {
        let offset = self.from + local as u64 * self.size;
        GlobalPtr::new(Raw { rank: rank as u32, block: self.number, offset })
    }

    /// Which element of its process a pointer points to, if it points into this allocation.
    pub fn local_of<T>(&self, ptr: GlobalPtr<T>) -> Option<usize> {
        let Raw { block, offset, .. } = ptr.raw();
        let past = offset.checked_sub(self.from).filter(|_| block == self.number)?;
        let whole = self.size > 0 && past.is_multiple_of(self.size);
        whole.then(|| (past / self.size) as usize)
    }

    /// Ends a private epoch, or does nothing but wait for all processes where there is none.
    pub async fn share(&self) -> Result<(), Error> {
        if self.lent.get() {
            return Err(Error::invalid(
                "the `Private` of this epoch is still there: drop it first",
            ));
        }
        // Whoever has passed this may access the parts of others, which have dropped theirs by
        // then.
        self.agree(Step::Share).await?;
        self.world.0.heap.blocks.set(self.number, Stand::Shared);
        Ok(())
    }

    /// Makes all processes' parts private: behind this nobody accesses the part of another.
    pub async fn close(&self) -> Result<(), Error> {
        self.shut(Stand::Private, Step::Close).await
    }

    /// Ends all accesses by pointers, in agreement with all processes.
    async fn shut(&self, stand: Stand, step: Step) -> Result<(), Error> {
        let (core, blocks) = (&*self.world.0, &self.world.0.heap.blocks);
        let before = blocks.get(self.number).map_or(Stand::Freed, |block| block.stand);
        // From here on this process begins nothing there; what it has begun is done before the
        // others are told so.
        blocks.set(self.number, stand);
        let agreed = async {
            core.all_done().await?;
            self.agree(step).await
        };
        agreed.await.inspect_err(|_| blocks.set(self.number, before))
    }

    /// Waits until all processes take the same step with the same allocation.
    async fn agree(&self, step: Step) -> Result<(), Error> {
        let differs = differs(&self.world, [self.number.into(), step as u64]).await?;
        match differs {
            None => Ok(()),
            Some(at) => {
                let what = ["the allocation", "what is done with it"][at];
                let here = format!("allocation {}, to {step:?}", self.number);
                Err(HeapError::Differs { what, here }.into())
            }
        }
    }

    /// Frees it. All processes await this.
    pub async fn free(self) -> Result<(), Error> {
        self.shut(Stand::Freed, Step::Free).await?;
        let heap = &self.world.0.heap;
        if let Some(block) = heap.blocks.get(self.number) {
            heap.give(block.from, block.len);
        }
        Ok(())
    }
}

/// What all processes do with an allocation at the same time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    Close,
    Share,
    Free,
}

/// A number that tells names apart.
pub(crate) fn hash(name: &str) -> u64 {
    // FNV-1a, which is the same everywhere.
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
