//! InfiniBand verbs for Tokio: registered memory, queue pairs, completions and connections, over
//! any Ethernet. One program lends a piece of its memory, and another writes, reads and changes it
//! without the first program taking part. No RDMA hardware is needed; the wire format is RoCE.
//!
//! ```
//! use doorbell_verbs::{Nic, QueuePairConfig, Region, RemoteMemory, Rights, ServiceId};
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // The server registers memory, and sends its key to each client that connects.
//! let server = Nic::open("shm").await?; // or "udp:192.0.2.7", "packet:eth0", "shm:job/1"
//! let domain = server.domain();
//! let memory = domain.register(Region::new(4096), Rights::REMOTE)?;
//! let mut listener = server.listen(ServiceId(7)).await?;
//! let name = listener.name(); // as text, it goes to any process
//! let serve = async {
//!     let pair = domain.queue_pair(&QueuePairConfig::default())?;
//!     pair.accept(listener.accept().await?, &memory.remote().to_bytes()).await
//! };
//!
//! // The client writes to the memory, and does an atomic operation there.
//! let client = Nic::open("shm").await?;
//! let pair = client.domain().queue_pair(&QueuePairConfig::default())?;
//! let (connected, served) = tokio::join!(pair.connect(name, &[]), serve);
//! let ((pair, key), _served) = (connected?, served?);
//! let remote = RemoteMemory::from_prefix(&key).ok_or("no key")?;
//! pair.write(b"hello", remote).await?;
//! assert_eq!(pair.fetch_add(remote.at(8, 8)?, 2).await?, 0);
//! assert_eq!(memory.load(8)?, 2);
//! # Ok(())
//! # }
//! ```
//!
//! # The picture
//!
//! A program opens a [`Nic`], which is a network adapter in software, over a device: shared memory,
//! a UDP socket, or a raw Ethernet interface. In a protection [`Domain`] of the NIC it registers
//! memory, and makes queue pairs. Two queue pairs are connected with each other, like the two ends
//! of a cable. From then on each side posts requests to its queue pair: to send a message into a
//! buffer that the peer has posted, or to read, write or change atomically the memory whose key
//! the peer has told, without the peer's program taking part. The NIC carries the requests out, and
//! each ends with a completion, which brings the request's memory back.
//!
//! ```text
//!   program                                               program
//!      │ posts requests    ▲ takes completions               │ registers memory, tells its key
//!      ▼                   │                                 ▼
//!   queue pair ─────────── connection ─────────────── queue pair ── registered memory
//!      │                                                     │
//!     NIC ── device ═══════════ network ═══════════ device ─ NIC
//! ```
//!
//! # The parts
//!
//! | | |
//! |---|---|
//! | [`Nic`], [`NicBuilder`], [`Config`] | a network adapter in software, over a device |
//! | [`Domain`], [`Region`], [`Registered`], [`RemoteMemory`], [`Rights`] | memory that peers may use, and what names it |
//! | [`Lent`], [`SharedMemory`], [`Mapped`] | bytes lent for reading; memory that peers on the same machine map |
//! | [`Listener`], [`Incoming`], [`Unconnected`], [`Connection`], [`Name`] | making connections, and their state |
//! | [`QueuePair`], [`Message`], [`Failed`] | requests as futures |
//! | [`Queues`], [`SendQueue`], [`ReceiveQueue`], [`CompletionQueue`], [`SharedReceiveQueue`] | requests that are posted to queues |
//! | [`Datagrams`], [`Destination`] | messages without a connection |
//! | [`work`] | the kinds of requests, with their options |
//! | [`AsyncEvent`], [`Statistics`] | what a NIC reports |
//!
//! # Two kinds of queue pairs
//!
//! | | [`QueuePair`] | [`Queues`] |
//! |---|---|---|
//! | a request is | a future: `pair.write(buf, remote).await` | [posted](SendQueue::post), singly or in a [batch](SendQueue::batch) with one doorbell |
//! | a request completes | through its future | in a [`CompletionQueue`], a stream with one reader, which any number of queue pairs may share |
//! | if the queue is full | the future waits | the request is [refused](Refused), and comes back |
//! | suits | programs of many tasks | streams, and programs for which 100 ns matter |
//!
//! Both take every [kind of request](work). Both are made unconnected, take receives at once, and
//! are consumed by being [connected](Unconnected::connect), [accepted](Unconnected::accept), or
//! [exchanged](Unconnected::exchange) as `ibv_rc_pingpong` does.
//!
//! [`Queues`] may also be [unreliable](QueuesConfig::unreliable). [`Datagrams`] are queues without
//! a connection, whose every message names its destination.
//!
//! # Memory
//!
//! A [`Buf`] is owned bytes: a request takes it along, and its completion brings it back. A
//! `Vec<u8>`, `Bytes`, `BytesMut`, `Box<[u8]>` or `String` becomes a `Buf` without a copy when it
//! is given to a request, and a `Buf` becomes a `Vec<u8>` or `Bytes` without a copy. Literals such
//! as `b"hello"` or `"hello"` may be sent as they are.
//!
//! A [`Region`] is memory that peers may access. Once [registered](Domain::register), it has a key
//! that peers are told ([`RemoteMemory`], a value of 20 bytes), until the key is
//! [revoked](Registered::revoke): from then on no peer reads or changes a byte of the region. A
//! registered region never lends a slice. Whatever future, queue pair, registration or NIC is
//! dropped, and when, no memory is freed that a peer may still write.
//!
//! # Who runs the NIC
//!
//! [By default](Progress::Inline) waiting tasks run the NIC. A future that is polled takes turns
//! with the device, for as long as the configuration allows it to [spin](Config::spin), and only
//! then sleeps. When no task waits, a task of the runtime in which the NIC was opened runs the NIC;
//! this task looks every millisecond while the NIC was in use, and sleeps on the device when the
//! NIC is idle. A waiting future lets other tasks run every 40 µs, and at once when it has woken
//! one.
//!
//! [In dedicated mode](Progress::Dedicated) a thread of its own runs the NIC, on a processor of its
//! own. Programs then only touch queues in memory, and the NIC answers while they compute.
//!
//! Without a runtime, [`Nic::block_on`], [`CompletionQueue::wait`] and [`CompletionQueue::poll`]
//! run the NIC. On a runtime of one thread, a task that does not yield also stops an inline NIC.
//!
//! # Limits
//!
//! | what | at most |
//! |---|---|
//! | queue pairs, connections | [`queue_pairs`](Config::queue_pairs), and as many that have ended and rest; tables have room for 2048 at first |
//! | a queue pair | its two depths: 168 bytes a request, 40 a receive, and some 2,700 |
//! | registrations | [`registrations`](Config::registrations) |
//! | completions that futures have not taken | [`completions`](Config::completions), or twice as many as there are queue pairs, 96 bytes each |
//! | events that no program takes | 1024; the oldest are dropped |
//! | undecided requests for connections | 128 a listener, or [as configured](Nic::listen_with) |
//! | memory that peers have granted and nobody has mapped | 64 grants of each peer process; its oldest are dropped |
//! | the device | what its [capabilities](Nic::capabilities) say |
//!
//! # Errors
//!
//! Every request completes once. A request that fails brings its memory back and says why
//! ([`Failed`]): the peer has refused it, the peer is silent, or the connection has ended, with the
//! reason for that. A failed request breaks its queue pair, and requests that were posted behind it
//! are flushed. A program that wants to know without asking uses [`Connection::ended`] or
//! [`Nic::events`]; [`Nic::trouble`] and [`Nic::statistics`] tell the state of the NIC.
//!
//! # Features
//!
//! With `serde`, values that a program keeps in a file or sends to others can be serialised:
//! [`Config`], [`QueuePairConfig`], [`Address`], [`RemoteMemory`], [`Rights`], [`Statistics`], and
//! the numbers of the wire ([`Qpn`], [`ServiceId`], [`Rkey`], …).
//!
//! # Folders of the source, from the top
//!
//! `pair` and `queues` are the two kinds of queue pairs. `connect` makes their connections,
//! `memory` their registrations, and `nic` the handle that both need. `waiting` has the futures
//! that wait, and `progress` decides which of them runs the NIC. `adapter` is the NIC with its
//! device, and `control` its control plane. `dispatch` hands completions to tasks, `work` builds
//! requests, `error` and `link` describe errors and connections, `sync` and `sys` are locks and
//! system calls. Imports point downwards only.

#![deny(unsafe_code)]
#![deny(clippy::multiple_unsafe_ops_per_block)]

mod adapter;
mod connect;
mod control;
mod dispatch;
mod error;
#[cfg(all(test, verbs_loom))]
mod interleavings;
mod link;
mod memory;
mod name;
mod nic;
mod pair;
mod progress;
mod queues;
mod sync;
#[allow(unsafe_code)]
mod sys;
mod waiting;
pub mod work;

pub use connect::{Connection, Incoming, Kind, Listener, Side, Unconnected};
pub use control::Encryption;
pub use dispatch::AsyncEvent;
pub use error::{
    CloseError, ConnectError, Credits, Failed, FailedWhy, GivenUp, ListenRefused, ListenerEnded,
    MapError, OpenError, PostReceiveError, RegisterError, SendError, Unsent, Unwelcome, WhyGivenUp,
    WhyGone,
};
pub use link::{ConnectionState, Ending, Private};
pub use memory::{Lent, Mapped, Registered};
pub use name::{Name, NameError};
pub use nic::{Config, Domain, Nic, NicBuilder, Progress, Statistics};
pub use pair::{Message, Operation, QueuePair, QueuePairConfig, Receive};
pub use queues::{
    Batch, CompletionQueue, Datagrams, DatagramsConfig, Destination, NextCompletion, Queues,
    QueuesConfig, ReceiveQueue, SendQueue, SharedReceiveQueue,
};
pub use waiting::Until;
pub use work::{RemoteMemory, RemoteMemoryError};

pub use doorbell_core::cm::Silent;
pub use doorbell_core::memory::{AccessError, Buf, Frozen, Private as PrivateRegion, Region};
pub use doorbell_core::nic::{
    Attachment, Cause, Completion, CompletionQueueId, DATAGRAM_HEADER, Data, Done, Failure, Inline,
    KeepAlive, Memory, NotRights, PostError, ReceiveRequest, Refused, ResourceError, Rights,
    Segment, SharedReceiveQueueId, Silence, WorkRequest,
};
pub use doorbell_core::wire::cm::{CmPort, RejectReason, RnrRetryCount};
pub use doorbell_core::wire::{
    Imm, Metadata, MetadataTooLong, NotNumber, NotPathMtu, PathMtu, Qkey, Qpn, RemoteAddr, Rkey,
    ServiceId,
};
pub use doorbell_transports::{Address, Capabilities, ReachError, SharedMemory};

/// Items for the crates of this workspace that build on verbs, and of no use to programs. They are
/// not part of the interface, and change without notice, as hidden methods do.
#[doc(hidden)]
pub mod floor {
    pub use crate::connect::{Awaits, Prober, StopListening, watch_over};
    pub use crate::memory::{FrozenRegion, PooledRegion, RegionPool};
    pub use crate::nic::{HasNic, PolledWait};
    pub use crate::progress::{HeldNic, Look, NicGuard, Precedence};
    pub use crate::queues::UntilCompletion;
    pub use crate::sync::lock::locked;
    pub use crate::sys::thread::pin_to;
    pub use crate::waiting::{UntilHeld, WaitFor};
    pub use doorbell_core::memory::{Announced, PrivatePart, Sleepers};
    pub use doorbell_core::nic::{CompletionGauge, Copied, Polled};
    pub use doorbell_transports::PeerProcess;
    pub use doorbell_transports::floor::{
        LINK_BYTES, Room, addresses, descriptors, is_limit, naming_limits,
    };
}
