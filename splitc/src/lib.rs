//! Split-C for Tokio: one program runs in several processes, which read and write each other's
//! memory.
//!
//! ```
//! use doorbell::splitc;
//!
//! # fn keys(rank: usize) -> impl Iterator<Item = usize> {
//! #     (0..1000).map(move |number| (number * 7919 + rank) % (1 << 20))
//! # }
//! splitc::run(async |world| {
//!     let table = world.spread::<u64>(1 << 20).await?;        // cyclic over the processes
//!     for key in keys(world.rank()) {
//!         table.at(key).store_add(1)?;                        // one-sided; many share a message
//!     }
//!     world.all_store_sync().await?;                          // all of everybody's stores are in
//!     let mine: u64 = table.private().await?.iter().sum();    // my part, a plain slice
//!     let all = world.all_reduce(mine, |one, other| one + other).await?;
//!     assert_eq!(all, 1000 * world.size() as u64);
//!     Ok(())
//! })?;
//! # Ok::<(), splitc::RunError>(())
//! ```
//!
//! By default that runs as threads of one process, one for each processor. The same program runs as
//! [processes](Job::processes) of one machine, or on [many machines](Job::member).
//!
//! # The parts
//!
//! | | |
//! |---|---|
//! | [`run`], [`Job`] | how a program becomes processes |
//! | [`World`] | the processes, from the view of one: its rank, the memory of all, and what they do together |
//! | [`GlobalPtr`] | a process and a place in its memory: 16 bytes of plain data |
//! | [`Spread`], [`Matrix`] | arrays that are spread over the processes, by index, or the [own part](Spread::private) as a slice |
//! | [`Place`], [`Span`] | one element, or many, and what can be done with them: read, write, get, put, store, atomic changes |
//! | [`Get`], [`GetAll`], [`Done`] | handles to operations that are under way |
//! | [`Apply`] | functions of the program's own that run atomically on a value |
//! | [`Collective`], [`Begun`], [`Team`] | barriers, broadcasts, reductions and the like, awaited in place or begun and awaited later |
//! | [`Carrier`] | how operations reach another process: loads and stores, RDMA, or messages |
//!
//! # How operations are carried
//!
//! Each process chooses for each other one, and may [choose anew](World::set_carrier) at any time.
//!
//! * [`Carrier::Mapped`]: the other process's heap is mapped here, and an operation is a load, a
//!   store, or an atomic instruction, with checks that take a few nanoseconds. Nobody over there
//!   does anything.
//! * [`Carrier::OneSided`]: RDMA, of which the other process's NIC sees to everything. It knows
//!   reads, writes, fetch-and-add and compare-and-swap; other changes, and those of numbers of four
//!   bytes, go by messages. Stores are counted by a fetch-and-add behind them.
//! * [`Carrier::Messages`]: Active Messages with k [credits](Config::credits). Operations wait
//!   until they fill a message of 4096 bytes, or until this process awaits something of the world,
//!   and so share it. Gets and puts are answered, message by message. Stores are not: their credits
//!   come back once for max(1, k/4) messages.
//! * [`Carrier::Mixed`]: messages for split-phase operations below 512 bytes, RDMA for all others.
//!
//! # The order of accesses
//!
//! An operation *begins* where it is called, or, of those that are awaited, when it is first
//! polled. It is *done*
//!
//! * when it is awaited: [`read`](Place::read), [`write`](Place::write), atomic operations that
//!   return what they found;
//! * when its handle is, or a [`sync`](World::sync) of its process that was called later: gets,
//!   puts, and changes that give a handle. A put that is done is in the memory of the target;
//! * of a store, when its target's [`store_sync`](World::store_sync) has counted it, or everybody's
//!   [`all_store_sync`](World::all_store_sync) is done.
//!
//! 1. Two operations of one process, the second of which begins when the first is done, happen in
//!    that order, for everybody. Two that overlap may happen in either order, even if they are to
//!    the same place.
//! 2. What a process did before a [barrier](World::barrier), and is done, has happened for every
//!    process behind the barrier. So with all other synchronising collectives: all-reduce,
//!    all-gather and all-to-all. A broadcast orders only what its root did before, a reduction only
//!    what all did, for its root.
//! 3. Whoever finds a value that was [signalled](Span::put_signal), or sees stores counted, or
//!    finds by a read, a [`wait_until`](Place::wait_until) or an atomic operation a value that
//!    another process has written, and wrote only when other operations were done, finds those
//!    done, too.
//! 4. Atomic changes of one number are in one order for all processes, whatever carries them. An
//!    aligned number of 1, 2, 4 or 8 bytes is never seen half written. Longer elements may be.
//!
//! Stores that are mapped are in memory at once, and are *counted* every 4096 bytes, and whenever
//! the process that stores awaits something of the world; until one of the two, their target's
//! `store_sync` may not know of them.
//!
//! # Who makes progress
//!
//! [By default](Config::progress) a process serves the others whenever it awaits something of the
//! world, or calls [`poll`](World::poll). While it computes, mapped operations on its memory go on,
//! and RDMA writes over shared memory, which need no NIC but that of their own process; all other
//! RDMA and messages wait. With [`Progress::Dedicated`](doorbell_verbs::Progress::Dedicated) two
//! threads of its own, one for the NIC and one for messages, serve them whatever it does.
//!
//! A call that is not awaited may have to wait, too: `get`, `put` and `store` by messages, when the
//! message is full and all credits are in use, or by RDMA, when its queue is full. It makes
//! progress meanwhile, and keeps its thread. Programs that run several worlds in one thread, as
//! tests on a simulated network do, await [`flush`](World::flush) before so many operations are
//! under way.
//!
//! # How much it holds
//!
//! | what | at most |
//! |---|---|
//! | the heap of a process | [`heap`](Config::heap); the system provides what is allocated |
//! | an allocation that was freed | 24 bytes |
//! | for each other process: operations and stores that wait to be sent | a message of each, 4096 bytes |
//! | operations by messages under way | [`credits`](Config::credits) messages, 16 bytes for each operation |
//! | one-sided requests under way | 128, of 1 MiB at most each |
//! | handles | what the program keeps; a value of up to 8 bytes in place, others in memory of their own |
//! | receives | two for each credit and process, 64 to 65,536, of 4096 bytes |
//! | connections | three for each pair of processes |
//!
//! # What goes wrong
//!
//! A wrong pointer, index, length or type is an [`AccessError`] where the operation begins, and
//! nothing is sent. What is checked: the process, that the allocation was not freed and is not
//! private, that the range is within the allocation, and the alignment. Of memory that a process
//! has [allocated for itself](World::allocate), other processes do not know the bounds: a wrong
//! pointer to it is noticed if it leaves the part of the heap that is for such memory.
//!
//! A process that dies ends what others have under way to it, and all collectives, with an error
//! that [names it](Error::gone): at once over shared memory, within [`patience`](Config::patience)
//! over a network.
//!
//! The processes of a world trust each other, and nobody else is let in: each shows the
//! [key](Config::key). One that does not keep to this library's rules can alter all shared memory,
//! and even what another has as a [private](Private) slice.

#![forbid(unsafe_code)]

mod access;
mod arrays;
mod atomics;
mod collectives;
mod config;
mod element;
mod error;
mod fates;
mod functions;
mod global_ptr;
mod heap;
mod landing;
mod messages;
mod peers;
mod run;
mod stores;
mod world;

pub use access::{Done, Get, GetAll, Place, Span};
pub use arrays::{Matrix, Private, Spread};
pub use atomics::Atomic;
pub use collectives::{Awaited, Begun, Collective, Team, operators};
pub use config::{Carrier, Config};
pub use element::Element;
pub use error::{AccessError, CastError, Error, ErrorKind, Gone, HeapError};
pub use functions::Apply;
pub use global_ptr::GlobalPtr;
pub use run::{BoxError, Job, RunError, run};
pub use world::{JoinError, Membership, World};
