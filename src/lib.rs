//! InfiniBand verbs, Active Messages, Split-C and RPC for Tokio, over any Ethernet. Processes call
//! functions at each other, and read and write each other's memory, without RDMA hardware. This crate
//! is all of Doorbell under one name.
//!
//! [`am`] is Active Messages: a message runs a handler at its peer, and a call awaits what the
//! handler returns.
//!
//! ```
//! use doorbell::am::{Call, Endpoint, Handlers};
//!
//! const ADD: Call<(u64, u64), u64> = Call::new("add");
//!
//! #[tokio::main]
//! async fn main() -> anyhow::Result<()> {
//!     let server = Endpoint::open("udp:127.0.0.1:0", Handlers::new().on(ADD, |_, (a, b)| a + b)).await?;
//!     let client = Endpoint::open("udp:127.0.0.1:0", Handlers::new()).await?;
//!     let peer = client.connect(server.name()).await?;
//!     assert_eq!(peer.call(ADD, (2, 3)).await?, 5);
//!     Ok(())
//! }
//! ```
//!
//! [`splitc`] is one program in several processes, which read and write each other's memory by global
//! pointers and spread arrays.
//!
//! ```
//! # fn main() -> Result<(), doorbell::splitc::RunError> {
//! doorbell::splitc::run(async |world| {
//!     let counters = world.spread::<u64>(1000).await?;
//!     counters.at(7).store_add(1)?;
//!     world.all_store_sync().await?;
//!     assert_eq!(counters.at(7).read().await?, world.size() as u64);
//!     Ok(world.barrier().await?)
//! })
//! # }
//! ```
//!
//! [`bytestream`] replaces TCP: its streams are read and written as Tokio's are.
//!
//! ```
//! use doorbell::bytestream::{Listener, ServiceId, Stream};
//! use tokio::io::{AsyncReadExt, AsyncWriteExt};
//!
//! # #[tokio::main]
//! # async fn main() -> std::io::Result<()> {
//! let mut listener = Listener::open("udp:127.0.0.1:0", ServiceId(7)).await?;
//! let mut near = Stream::connect(listener.name()).await?;
//! near.write_all(b"hello").await?;
//! let mut far = listener.accept().await?;
//! far.read_exact(&mut [0; 5]).await?;
//! # Ok(())
//! # }
//! ```
//!
//! [`messages`] sends messages that are matched by tags, as in MPI:
//!
//! ```
//! use doorbell::messages::{Endpoint, Match};
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let (far, near) = (Endpoint::open("shm").await?, Endpoint::open("shm").await?);
//! near.connect(far.name()).await?.send(7, "hello").await?;
//! assert_eq!(far.receive(Match::exactly(7)).await?.body, "hello");
//! # Ok(())
//! # }
//! ```
//!
//! [`verbs`] is the layer below all of these: memory that peers write and read directly, queue
//! pairs, completions.
//!
//! ```no_run
//! use doorbell::verbs::{Nic, RemoteMemory};
//!
//! # async fn write(remote: RemoteMemory) -> Result<(), Box<dyn std::error::Error>> {
//! let nic = Nic::open("udp:192.0.2.7").await?;
//! let pair = nic.connect("udp:192.0.2.8:4791#7").await?;
//! pair.write(b"hello", remote).await?;
//! # Ok(())
//! # }
//! ```
//!
//! # The modules
//!
//! | | |
//! |---|---|
//! | [`rpc`] | services from traits, over Active Messages |
//! | [`am`] | Active Messages: a message runs a function at its peer |
//! | [`bytestream`] | streams of bytes, in place of TCP |
//! | [`messages`] | messages matched by tags, streams of pieces, frames |
//! | [`splitc`] | Split-C: one program in several processes that share memory |
//! | [`collectives`] | barriers, broadcasts, reductions, for groups over any of these |
//! | [`verbs`] | the layer below all of them: registered memory, queue pairs, completions |
//! | `secure` | keys, and whom they let in: encrypted connections |
//! | [`job`] | how the processes of a program find each other |
//! | [`logp`] | measures what a message costs, on any layer |
//! | [`transports`], [`protocol`] | devices; the protocol by itself, as state machines |
//!
//! # Features
//!
//! * `bytestream`, `messages`, `rpc`, `splitc`, on by default: the modules of these names.
//! * `secure`: the module of this name, which needs a C compiler.
//! * `metrics`: RPC counts and times calls for the crate `metrics`.
//! * `serde`: names, addresses, keys, settings and results can be serialised.
//!
//! # The protocol by itself
//!
//! Two NICs on a simulated network, of which one reads the other's memory and counts in it:
//!
//! ```
//! use std::time::Duration;
//!
//! use doorbell::protocol::encap::Version;
//! use doorbell::protocol::memory::{Buf, Region};
//! use doorbell::protocol::nic::{Config, Done, Memory, QueuePairConfig, Rights, WorkRequest};
//! use doorbell::protocol::wire::PathMtu;
//! use doorbell_simulation::{Fabric, LinkConfig};
//!
//! let mut fabric = Fabric::new(1, Version::V2Ipv4, Config::default());
//! let nodes = [fabric.node(), fabric.node()];
//! let stations = nodes.map(|node| fabric.station(node));
//! fabric.network.link(stations[0], stations[1], LinkConfig::default());
//!
//! let [mut client, server] = nodes.map(|node| {
//!     let nic = fabric.nic(node);
//!     let domain = nic.domain();
//!     let (queue, completions) = nic.completion_queue(16).expect("a capacity");
//!     let ends = nic.queue_pair(&QueuePairConfig::new(domain, queue)).expect("room");
//!     (domain, completions, ends)
//! });
//! let ends = ((nodes[0], client.2.qpn), (nodes[1], server.2.qpn));
//! fabric.connect(ends.0, ends.1, PathMtu::Mtu1024, |_, _| {});
//!
//! let memory = Region::from_bytes(&41u64.to_ne_bytes());
//! let lent = fabric.nic(nodes[1]).register(server.0, memory.clone(), Rights::REMOTE)?;
//! let (address, rkey) = (lent.address, lent.rkey);
//!
//! // Two requests, one doorbell.
//! client.2.send.post(WorkRequest::read(1, address, rkey, Buf::with_capacity(8)))?;
//! client.2.send.post(WorkRequest::fetch_add(2, address, rkey, 1).fenced())?;
//! client.2.send.ring();
//!
//! let mut done = Vec::new();
//! fabric.run_until(Duration::from_secs(1), |_| {
//!     done.extend(client.1.poll());
//!     done.len() == 2
//! });
//! let Memory::Buf(read) = &done[0].memory else { panic!("it was read into a buffer") };
//! assert_eq!(**read, 41u64.to_ne_bytes());
//! assert_eq!(done[1].outcome, Ok(Done::Atomic { before: 41 }));
//! assert_eq!(memory.load(0)?, 42);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

pub use doorbell_am as am;
#[cfg(feature = "bytestream")]
pub use doorbell_bytestream as bytestream;
pub use doorbell_collectives as collectives;
pub use doorbell_job as job;
pub use doorbell_logp as logp;
#[cfg(feature = "messages")]
pub use doorbell_messages as messages;
#[cfg(feature = "rpc")]
pub use doorbell_rpc as rpc;
#[cfg(feature = "secure")]
pub use doorbell_secure as secure;
#[cfg(feature = "splitc")]
pub use doorbell_splitc as splitc;
pub use doorbell_transports as transports;
pub use doorbell_verbs as verbs;

/// The protocol by itself: a NIC and a connection manager as state machines, without sockets, clocks
/// and threads, and all that they read and write.
///
/// * [`nic`](protocol::nic): the network adapter. Memory lent by key, work queues and doorbells,
///   completion queues; send, write, read, atomics; unreliable connections and datagrams.
/// * [`cm`](protocol::cm): the connection manager, by which two ends meet and part;
///   [`connect`](protocol::connect): what its terms mean for a NIC's queue pairs.
/// * [`memory`](protocol::memory): regions that several may write at once, soundly, and buffers
///   that nobody else may.
/// * [`wire`](protocol::wire): every header of a RoCE packet and every message of the connection
///   manager, read and written in place; [`encap`](protocol::encap): the outer headers and the
///   ICRC, alone or in runs for segmentation offload; [`payload`](protocol::payload): bytes that
///   can only be copied from.
/// * [`cipher`](protocol::cipher): encrypted packets, and the keys of a connection.
/// * [`pcap`](protocol::pcap), [`pcapng`](protocol::pcapng): capture files.
///   [`time`](protocol::time): a moment, told from outside.
pub mod protocol {
    pub use doorbell_core::{
        cipher, cm, connect, encap, memory, nic, payload, pcap, pcapng, time, wire,
    };
}

mod readmes;

/// The README's example is compiled and run with the tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// The programs of the guide to verbs are compiled and run with the tests.
#[cfg(doctest)]
#[doc = include_str!("../docs/guides/verbs.md")]
struct Verbs;

/// The programs of the guide to Active Messages are compiled and run with the tests.
#[cfg(doctest)]
#[doc = include_str!("../docs/guides/active-messages.md")]
struct ActiveMessages;

/// The programs of the guide to Split-C are compiled and run with the tests.
#[cfg(doctest)]
#[doc = include_str!("../docs/guides/split-c.md")]
struct SplitC;

/// The program of the guide to jobs is compiled with the tests.
#[cfg(doctest)]
#[doc = include_str!("../docs/guides/jobs.md")]
struct Jobs;

/// The programs of the guide to tagged messages are compiled and run with the tests.
#[cfg(doctest)]
#[doc = include_str!("../docs/guides/messages.md")]
struct Messages;

/// The programs of the guide to byte streams are compiled and run with the tests.
#[cfg(doctest)]
#[doc = include_str!("../docs/guides/byte-streams.md")]
struct ByteStreams;

/// The programs of the guide to messages as streams are compiled and run with the tests.
#[cfg(doctest)]
#[doc = include_str!("../docs/guides/streams.md")]
struct Streams;

/// The program of the page about ends is compiled and run with the tests.
#[cfg(doctest)]
#[doc = include_str!("../docs/operating/endings.md")]
struct Endings;

/// The program of the page about lossy networks is compiled and run with the tests.
#[cfg(doctest)]
#[doc = include_str!("../docs/congestion.md")]
struct Congestion;

/// The programs of the guide to frames are compiled and run with the tests.
#[cfg(doctest)]
#[doc = include_str!("../docs/guides/frames.md")]
struct Frames;

/// The programs of the guide to RPC are compiled and run with the tests.
#[cfg(doctest)]
#[doc = include_str!("../docs/guides/rpc.md")]
struct Rpc;

/// The programs of the guide to RPC in production are compiled and run with the tests.
#[cfg(doctest)]
#[doc = include_str!("../docs/guides/rpc-in-production.md")]
struct RpcInProduction;

/// The programs of the guide to watching RPC are compiled and run with the tests.
#[cfg(doctest)]
#[doc = include_str!("../docs/guides/rpc-observability.md")]
struct RpcObservability;
