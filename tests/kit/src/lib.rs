//! What Doorbell is tested with. First of all a simulated Ethernet: stations, switches and cables
//! in one place, in virtual time, by one seed.
//!
//! A [`Network`] moves frames, from the Ethernet header on and without the check sum, between
//! stations. It knows nothing of what is in them, except the addresses that a switch learns and
//! the two bits by which it tells of congestion. Nothing happens by itself: [`Network::step`] goes
//! on to the next event that concerns a station and returns it.
//!
//! * Cables have latency, bandwidth, an MTU, and [`Faults`] in each direction: loss, duplication,
//!   corruption, reordering. They can be cut, and healed, and changed while frames are on them.
//! * Switches learn addresses, flood what they don't know, queue, mark, and drop what does not fit.
//! * Stations have one interface and one timer. A partition keeps some of them from the rest; a
//!   restart makes one forget.
//!
//! A [`Fabric`] is such a network with a NIC at each station, and a connection manager beside it
//! where one is asked for. An [`Ether`] is one with a device at each station, for programs that
//! sleep on devices and do not know that their time is not the world's.
//!
//! Beside it, for what is real: a [`lab`] of namespaces and cables, a [`Forger`] of packets in
//! other hosts' names, [processes](child) that play the other part of a test, also as [another
//! user](stranger) of the machine, a [`Rig`] of a NIC over a device, [what every device must do](mod@conformance), and a [browser] for reports.
//!
//! The same seed and the same calls give the same run, down to [`Network::trace_hash`]. So a
//! failure is replayed by its seed, and [`Network::start_recording`] turns the replay into a
//! capture file.
//!
//! Here a station repeats a question, over a cable that loses half of all frames, until the answer
//! is there:
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

mod abandoned;
mod agenda;
mod allocated;
pub mod browser;
mod causes;
pub mod child;
mod config;
pub mod conformance;
mod counters;
mod ecn;
mod effort;
mod ether;
mod fabric;
mod faults;
mod forger;
mod inputs;
pub mod judges;
pub mod lab;
mod lane;
mod luck;
mod managers;
mod network;
mod over;
mod partition;
mod port;
mod recording;
mod rig;
mod sockets;
pub mod stranger;
mod switch;
#[allow(unsafe_code)]
mod sys;
mod timers;
mod trace;
mod traffic;
mod ways;

pub use abandoned::abandoned;
pub use allocated::Allocated;
pub use causes::chain;
pub use config::{Bandwidth, LinkConfig, SwitchConfig};
pub use counters::Counters;
pub use doorbell_core::time::Time;
pub use effort::{effort, is_thorough};
pub use ether::{Ether, Pace, Station, Still};
pub use fabric::{Fabric, NodeId};
pub use faults::{Faults, corrupt};
pub use forger::{Bounce, Forger};
pub use inputs::{try_body, try_inputs, try_mutations};
pub use luck::{Luck, Odds};
pub use network::{End, Event, LinkId, Network, StationId, SwitchId};
pub use rig::{PATIENCE, Rig, is_ready, joined, reach, ready, sleep, turn, until};
pub use sockets::{datagrams_to_closed_ports, udp_sockets};
pub use sys::{
    die_with_parent, is_filtered, limit_addresses, limit_descriptors, limit_file_size,
    ordinary_user, readable, run_as, terminal,
};
