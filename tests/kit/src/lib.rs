//! The tools with which Doorbell is tested. First of all a simulated Ethernet: stations, switches
//! and cables in virtual time, in which all chance comes from one seed.
//!
//! A [`Network`] moves frames between stations, from the Ethernet header on and without the
//! checksum. It reads nothing of a frame but the addresses, which a switch learns, and the two bits
//! by which a switch signals congestion. Nothing happens by itself: [`Network::step`] goes on to
//! the next event that concerns a station, and returns the event.
//!
//! * Cables have latency, bandwidth, an MTU, and [`Faults`] in each direction: loss, duplication,
//!   corruption, reordering. They can be cut, healed, and changed while frames are on them.
//! * Switches learn addresses, flood frames to unknown ones, queue, mark congestion, and drop what
//!   exceeds their buffers.
//! * Stations have one interface and one timer. A partition keeps some stations from the others,
//!   and a restart empties a station.
//!
//! A [`Fabric`] is such a network with a NIC at each station, and optionally a connection manager
//! beside the NIC. An [`Ether`] is such a network with a device at each station, for programs that
//! sleep on devices and don't know that their time is virtual.
//!
//! Tools for real systems: a [`lab`] of namespaces and cables, a [`Forger`] of packets in the names
//! of other hosts, [processes](child) that play another part of a test, also as [another
//! user](stranger) of the machine, a [`Rig`] of a NIC over a device, [a suite of tests for every
//! device](mod@conformance), and a [browser] for reports.
//!
//! The same seed and the same calls give the same run, down to [`Network::trace_hash`]. So a
//! failure is replayed by its seed, and [`Network::start_recording`] turns the replay into a
//! capture file.
//!
//! In this example a station repeats a question until the answer has come, over a cable that loses
//! half of all frames:
//!
//! ```
//! use std::time::Duration;
//!
//! use doorbell_kit::{Event, Faults, LinkConfig, Network, Time};
//!
//! let mut network = Network::new(3);
//! let (client, server) = (network.station(), network.station());
//! let lossy = LinkConfig::default().with_faults(Faults { loss: 0.5, ..Faults::NONE });
//! network.link(client, server, lossy);
//!
//! network.wake_at(client, Some(Time::ZERO));
//! let answered = loop {
//!     let second = Time::ZERO + Duration::from_secs(1);
//!     match network.step(second) {
//!         Some((who, Event::Wake)) => {
//!             network.send(who, b"a question, as an Ethernet frame".to_vec());
//!             network.wake_at(who, Some(network.now() + Duration::from_millis(1)));
//!         }
//!         Some((who, Event::Frame(frame))) if who == server => network.send(server, frame),
//!         Some((_, Event::Frame(_))) => break network.now(),
//!         None => panic!("no answer within a second"),
//!     }
//! };
//! // Lost four times, there or back. The fifth time it is a microsecond each way.
//! assert_eq!(answered, Time::from_nanos(4_002_000));
//! assert_eq!(network.counters().lost, 4);
//! ```

#![deny(unsafe_code)]
#![allow(missing_debug_implementations, reason = "what tests are made of is not printed")]

mod addressing;
mod allocator;
pub mod browser;
mod cancellation;
pub mod child;
mod config;
pub mod conformance;
mod connection_manager;
mod counters;
mod ecn;
mod effort;
mod error_chain;
mod ether;
mod event_queue;
mod fabric;
mod faults;
mod forger;
mod forwarding;
mod fuzz_inputs;
mod ids;
pub mod judges;
pub mod lab;
mod lab_error;
mod lane;
mod namespace;
mod network;
mod partition;
mod port;
mod random;
mod real_device;
mod real_fabric;
mod recording;
mod rig;
pub mod stranger;
mod switch;
#[allow(unsafe_code)]
mod sys;
mod timers;
mod trace;
mod udp_sockets;

pub use allocator::Allocated;
pub use cancellation::abandoned;
pub use config::{Bandwidth, LinkConfig, SwitchConfig};
pub use counters::Counters;
pub use doorbell_core::time::Time;
pub use effort::{effort, is_thorough};
pub use error_chain::chain;
pub use ether::{Ether, Pace, Station, Still};
pub use fabric::{Fabric, NodeId};
pub use faults::{Faults, corrupt};
pub use forger::{Bounce, Forger};
pub use fuzz_inputs::{try_body, try_inputs, try_mutations};
pub use ids::{LinkId, StationId, SwitchId};
pub use network::{End, Event, Network};
pub use random::{Luck, Odds};
pub use rig::{PATIENCE, Rig, is_ready, joined, reach, ready, sleep, turn, until};
pub use sys::{
    die_with_parent, is_filtered, limit_addresses, limit_descriptors, limit_file_size,
    ordinary_user, readable, run_as, terminal,
};
pub use udp_sockets::{datagrams_to_closed_ports, udp_sockets};
