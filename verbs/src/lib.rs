//! InfiniBand verbs for Tokio: a program writes to another's memory, and awaits that it is there.
//!
//! ```
//! # use doorbell::verbs::{Config, Nic, QueuePairConfig, Region, RemoteMemory, Rights, ServiceId};
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let name = |end| format!("shm:front-page/{}/{end}", std::process::id());
//! # let (here, there) = (&name(0), &name(1));
//! // Who lends memory registers it, and tells its key to whoever asks for a connection.
//! let server = Nic::open(there, Config::default())?; // "udp:192.0.2.7", "packet:eth0", "shm:job/1"
//! let domain = server.domain();
//! let memory = domain.register(Region::new(4096), Rights::REMOTE)?;
//! let mut listener = server.listen(ServiceId(7)).await?;
//! let lends = async {
//!     let pair = domain.queue_pair(&QueuePairConfig::default())?;
//!     pair.accept(listener.accept().await, &memory.remote().to_bytes()).await
//! };
//!
//! // Who has the key writes, reads, and does atomic operations there.
//! let client = Nic::open(here, Config::default())?;
//! let pair = client.domain().queue_pair(&QueuePairConfig::default())?;
//! let (asked, lent) = tokio::join!(pair.connect(there, ServiceId(7), &[]), lends);
//! let ((pair, key), _lent) = (asked?, lent?);
//! let remote = RemoteMemory::from_prefix(&key).ok_or("no key")?;
//! pair.write(b"hello", remote).await?;
//! assert_eq!(pair.fetch_add(remote.at(8, 8)?, 2).await?, 0);
//! assert_eq!(memory.load(8)?, 2);
//! # Ok(())
//! # }
//! ```
//!
//! # Two kinds of queue pairs
//!
//! | | [`QueuePair`] | [`Queues`] |
//! |---|---|---|
//! | a request is | a future: `pair.write(buf, remote).await` | [posted](SendQueue::post), singly or in a [batch](SendQueue::batch) with one doorbell |
//! | completes | the future | in a [`CompletionQueue`], a stream with one reader, for as many queue pairs as it likes |
//! | when the queue is full | it waits | it is [refused](Refused), and comes back |
//! | is for | programs of many tasks | the last hundred nanoseconds, and for streams |
//!
//! Both take every [kind of request](work), which takes only what can go with it. Both are made
//! unconnected, take receives at once, and are consumed by being [connected](Unconnected::connect),
//! [accepted](Unconnected::accept), or [exchanged](Unconnected::exchange) as `ibv_rc_pingpong`
//! does.
//!
//! [`Queues`] may also be [unreliable](QueuesConfig::unreliable), and [`Datagrams`] are queues
//! without a connection, whose every message names whom it is for.
//!
//! # Memory
//!
//! A [`Buf`] is owned bytes: a request takes it along, and its completion brings it back. A
//! `Vec<u8>`, `Bytes`, `BytesMut`, `Box<[u8]>` or `String` becomes one without a copy where a
//! request is given it, and what comes back becomes a `Vec<u8>` or `Bytes` without a copy;
//! `b"hello"` or `"hello"` may be sent as they are. A [`Region`] is memory that may be lent:
//! [registered](Domain::register), it has a key that peers may be told ([`RemoteMemory`], a value
//! of 20 bytes), until that is [revoked](Registered::revoke): from then on no byte of it is read or
//! changed by anybody else. It never lends a slice meanwhile. Whatever future, queue pair,
//! registration or NIC is dropped, and when, nothing is freed that a peer may still write.
//!
//! # Who runs the NIC
//!
//! [By default](Progress::Inline) whoever waits: a future that is polled takes turns with the
//! device, for as long as the configuration says it may [spin](Config::spin), and only then sleeps.
//! When nobody waits, a task of the runtime in which the NIC was opened sees to it; it looks every
//! millisecond while the NIC was in use, and sleeps on the device when it is idle. A future lets
//! other tasks run every 40 µs that it waits, and at once when it has woken one.
//!
//! [Or a thread of its own](Progress::Dedicated), on a processor of its own: programs then only
//! touch rings, and whatever they compute meanwhile, the NIC answers.
//!
//! Without a runtime, [`Nic::block_on`], [`CompletionQueue::wait`] and [`CompletionQueue::poll`]
//! do. On a runtime of one thread, work that keeps the thread keeps an inline NIC, too.
//!
//! # How much it holds
//!
//! | what | at most |
//! |---|---|
//! | queue pairs, connections | [`queue_pairs`](Config::queue_pairs), and as many that are over and rest |
//! | a queue pair | its two depths: 168 bytes a request, 40 a receive, and some 2,700 |
//! | registrations | [`registrations`](Config::registrations) |
//! | completions of futures that wait for a turn | [`completions`](Config::completions), 96 bytes each |
//! | events that nobody takes | 1024; the oldest go |
//! | peers that ask for a connection | 128 a listener, or [as it was told](Nic::listen_with) |
//! | memory that peers have granted and nobody has mapped | 1024; the oldest go |
//! | the device | what its [capabilities](Nic::capabilities) say |
//!
//! # What goes wrong
//!
//! Every request completes once. One that fails brings its memory back and says why ([`Failed`]):
//! by the peer's refusal, its silence, or the end of the connection and the reason for that. The
//! queue pair is broken then, and what was posted behind is flushed. See [`Connection::ended`] for
//! who wants to know without asking, [`Nic::events`], [`Nic::trouble`], and [`Nic::statistics`].
//!
//! # Features
//!
//! With `serde`, values that a program keeps in a file or sends to others can be serialised:
//! [`Config`], [`QueuePairConfig`], [`Address`], [`RemoteMemory`], [`Rights`], [`Statistics`], and
//! the numbers of the wire ([`Qpn`], [`ServiceId`], [`Rkey`], …).

mod adapter;
mod connect;
mod control;
mod dispatch;
mod error;
#[cfg(all(test, verbs_loom))]
mod interleavings;
mod link;
mod memory;
mod nic;
mod pair;
mod progress;
mod queues;
mod sync;
mod sys;
mod waiting;
pub mod work;

pub use connect::{Connection, Incoming, Kind, Listener, Side, Unconnected};
pub use dispatch::AsyncEvent;
pub use error::{
    ConnectError, Failed, FailedWhy, ListenRefused, NicError, PostReceiveError, RegisterError,
};
pub use link::{Ending, Private, Stand};
pub use memory::{Mapped, Registered};
pub use nic::{Config, Domain, Nic, Progress, Statistics};
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
pub use doorbell_core::wire::cm::{CmPort, RnrRetryCount};
pub use doorbell_core::wire::{
    Imm, Metadata, MetadataTooLong, NotNumber, NotPathMtu, PathMtu, Qkey, Qpn, RemoteAddr, Rkey,
    ServiceId,
};
pub use doorbell_transports::{Address, Capabilities, SharedMemory};

/// For crates of this workspace that stand on verbs: what they use of it and programs have no use
/// for. It is no part of the interface, and changes without notice, as hidden methods do.
#[doc(hidden)]
pub mod floor {
    pub use crate::connect::StopListening;
    pub use crate::nic::PolledWait;
    pub use crate::progress::{AtHand, Hand, Look, Precedence};
    pub use crate::queues::UntilCompletion;
    pub use crate::sys::epoch::assume_private_part;
    pub use crate::waiting::{UntilInHand, WaitFor};
    pub use doorbell_core::memory::PrivatePart;
    pub use doorbell_core::nic::{CompletionGauge, Copied, Polled};
}
