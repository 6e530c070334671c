//! Split-C for Tokio: one program runs in several processes, which read and write each other's
//! memory by global pointers and spread arrays. Operations may overlap, and travel by loads and
//! stores, by RDMA, or by messages that many of them share.
//!
//! ```
//! use doorbell_splitc as splitc;
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
//!     let mine: u64 = table.private().await?.iter().sum();    // a copy of my part, a slice
//!     let all = world.all_reduce(mine, |one, other| one + other).await?;
//!     assert_eq!(all, 1000 * world.size() as u64);
//!     Ok(())
//! })?;
//! # Ok::<(), splitc::RunError>(())
//! ```
//!
//! ```text
//!   process 0          process 1          process 2        one program, many processes
//!  ┌──────────┐       ┌──────────┐       ┌──────────┐
//!  │ program  │       │ program  │       │ program  │      World, GlobalPtr, Spread
//!  ├──────────┤ get   ├──────────┤ store ├──────────┤
//!  │   heap   │◄──────┤   heap   ├──────►│   heap   │      loads and stores, RDMA,
//!  └──────────┘       └──────────┘       └──────────┘      or messages
//!       └───────── collectives: barriers, sums, … ──┘
//! ```
//!
//! Each process has a heap of the same length. An operation names an element of any process's heap
//! by a pointer or by an array's index, and is carried there in the fastest way that leads there.
//!
//! By default the program runs as threads of one process, one for each processor. The same program
//! runs as [processes](Job::processes) of one machine, or on [many machines](Job::member).
//!
//! # The parts
//!
//! | | |
//! |---|---|
//! | [`run`], [`Job`] | how a program becomes processes |
//! | [`World`] | the processes, from the view of one: its rank, the memory of all, and what they do together |
//! | [`GlobalPtr`] | a process and a place in its memory: 16 bytes of plain data |
//! | [`Spread`], [`Matrix`] | arrays that are spread over the processes, by index, or a copy of the [own part](Spread::private) as a plain slice |
//! | [`Place`], [`Span`] | one element, or many, and what can be done with them: read, write, get, put, store, atomic changes |
//! | [`Get`], [`GetAll`], [`Done`] | handles to operations that are under way |
//! | [`Apply`] | functions of the program's own that run atomically on a value |
//! | [`Collective`], [`Begun`], [`Team`] | barriers, broadcasts, reductions and the like, awaited in place or begun and awaited later |
//! | [`Carrier`] | how operations reach another process: loads and stores, RDMA, or messages |
//!
//! # How operations are carried
//!
//! Each process chooses a carrier for each other process, and may [choose anew](World::set_carrier)
//! at any time.
//!
//! * [`Carrier::Mapped`]: the target's heap is mapped into this process, and an operation is a
//!   load, a store, or an atomic instruction, with checks that take a few nanoseconds. The target
//!   takes no part.
//! * [`Carrier::OneSided`]: RDMA, which the target's NIC carries out. RDMA has reads, writes,
//!   fetch-and-add and compare-and-swap; other changes, and changes of numbers of four bytes, go by
//!   messages. Stores are counted by a fetch-and-add behind them.
//! * [`Carrier::Messages`]: Active Messages with k [credits](Config::credits). Operations are
//!   aggregated until they fill a message of 4096 bytes, or until this process waits for something
//!   of the world, or [flushes](World::flush). Messages of gets and puts are answered, each by one reply. Messages of stores are
//!   not answered: their credits come back once for max(1, k/4) messages.
//! * [`Carrier::Mixed`]: messages for split-phase operations below 512 bytes, RDMA for all others.
//!
//! # The order of accesses
//!
//! An operation *begins* where it is called or, if it is awaited, when it is first polled. When it
//! is *done* depends on its kind:
//!
//! * an operation that is awaited ([`read`](Place::read), [`write`](Place::write), and atomic
//!   operations that return the value before) is done when its future is;
//! * an operation that gives a handle (gets, puts, and changes that give a handle) is done when its
//!   handle is, or when a [`sync`](World::sync) is that its process called later. A put that is
//!   done is in the memory of the target;
//! * a store is done when its target's [`store_sync`](World::store_sync) has counted it, or when
//!   all processes' [`all_store_sync`](World::all_store_sync) is done.
//!
//! 1. If a process begins an operation after another one of its operations is done, the two happen
//!    in that order for every process. Two operations that overlap may happen in either order, even
//!    on the same place.
//! 2. What a process did before a [barrier](World::barrier), and what was done by then, has
//!    happened for every process behind the barrier. The other synchronising collectives guarantee
//!    the same: all-reduce, all-gather and all-to-all. A broadcast orders only what its root did
//!    before it. A reduction orders what all processes did before it, but only for its root.
//! 3. A process that finds a number changed by a [signal](Span::put_signal) finds the data that was
//!    put with the signal in place, and a process that finds stores counted finds the stored values
//!    in place. A process that finds, by a read, a [`wait_until`](Place::wait_until) or an atomic
//!    operation, a value that another process has written also finds every operation in place that
//!    was done before the value was written.
//! 4. Atomic changes of one number happen in one order for all processes, whatever carries them. An
//!    aligned number of 1, 2, 4 or 8 bytes is never seen half written; longer elements may be.
//!
//! Mapped stores are in memory at once, but for atomic changes that are stored, such as
//! [`store_add`](Place::store_add): up to 16 of these are made a little later, when the processor has
//! fetched their words. Mapped stores are *counted* every 4096 bytes, whenever the process that
//! stores waits for something of the world, after some thousand of its operations, and by
//! [`flush`](World::flush); until then their target's `store_sync` may not know of them, and no
//! other call of their process is needed after that.
//!
//! # Who makes progress
//!
//! [By default](Config::progress) a process serves the others whenever it waits for something of the
//! world, or calls [`poll`](World::poll) or [`flush`](World::flush); and once for every thousand of
//! its operations, though none of them has to wait. While it computes, two kinds of operations on
//! its memory go on: mapped ones, and RDMA writes over shared memory, which need only the NIC of the
//! process that writes. All other RDMA and all messages wait. Over a network they wait for half a
//! second at most: there a thread of the library's own serves the others eight times in the time
//! after which they would take the process for dead, [`patience`](Config::patience), and at least
//! twice a second. So a process may compute for as long as it likes. With
//! [`Progress::Dedicated`](doorbell_verbs::Progress::Dedicated) two threads of the library's own,
//! one for the NIC and one for messages, serve the others at once, whatever the process does.
//!
//! A [`Begun`] collective goes on while its process awaits anything; `poll` alone does not move it,
//! since other tasks of the thread must run.
//!
//! A call that is not awaited may have to wait, too: `get`, `put` and `store` by messages wait when
//! the message is full and all credits are in use, and by RDMA when its queue is full. The call
//! makes progress meanwhile, and blocks its thread. Programs that run several worlds in one thread,
//! as tests on a simulated network do, await [`flush`](World::flush) before so many operations are
//! under way.
//!
//! # How much memory a world holds
//!
//! | what | at most |
//! |---|---|
//! | the heap of a process | [`heap`](Config::heap); the system provides what is allocated |
//! | an allocation that was freed | 24 bytes |
//! | an array that was [private](Spread::private) | the own part once more, until it is freed or dropped |
//! | for each other process: operations and stores that wait to be sent | a message of each, 4096 bytes |
//! | operations by messages under way | [`credits`](Config::credits) messages, 16 bytes for each operation |
//! | one-sided requests under way | 128, of 1 MiB at most each |
//! | handles | what the program keeps; a value of up to 8 bytes in place, others in memory of their own |
//! | receives | eight for each credit and other process, 64 to 65,536, of 4096 bytes |
//! | connections | three for each pair of processes |
//!
//! # What goes wrong
//!
//! A wrong pointer, index, length or type is an [`AccessError`] where the operation begins, and
//! nothing is sent. The checks are: the process exists, the allocation was not freed and is not
//! private, the range is within the allocation, and the place is aligned. The bounds of memory that
//! a process has [allocated for itself](World::allocate) are not known to other processes: a wrong
//! pointer to such memory is noticed only if it leaves the part of the heap that is for such
//! memory.
//!
//! When a process dies, everything that others have under way to it ends with an error that [names
//! it](Error::gone), and so do all collectives: at once over shared memory, within
//! [`patience`](Config::patience) over a network. A process that waits for what another is to write,
//! by [`wait_until`](Place::wait_until) or [`store_sync`](World::store_sync), gets an error as well
//! when the programs of all others have ended.
//!
//! Processes that call different collectives get an error that names both. A collective that is
//! dropped before it is done, by a time-out for example, can't be finished for the others either:
//! it ends all collectives of the world, or of its team, with an error. To go on without waiting,
//! [`begin`](Collective::begin) it and keep the handle.
//!
//! The processes of a world trust each other with shared memory, and admit only processes that know
//! the [key](Config::key). A process that breaks this library's rules can alter all shared memory,
//! but not what another process has as a [private](Spread::private) slice: that is a copy. Slices
//! [in place](Spread::private_in_place) are unsafe for this reason.

#![deny(unsafe_code)] // but in `arrays/sys.rs`

mod access;
mod arrays;
mod atomics;
mod causes;
mod collectives;
mod config;
mod define;
mod departures;
mod element;
mod error;
mod functions;
#[doc(hidden)]
pub mod fuzz;
mod global_ptr;
mod group_errors;
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
pub use doorbell_job::Route;
pub use element::Element;
pub use error::{AccessError, CastError, Error, ErrorKind, Gone, HeapError};
pub use functions::Apply;
pub use global_ptr::GlobalPtr;
pub use run::{BoxError, Job, RunError, run};
pub use world::{JoinError, Membership, World};
