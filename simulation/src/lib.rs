//! A simulated Ethernet in virtual time, on which NICs and programs of Doorbell run: stations,
//! switches and cables, in which all chance comes from one seed.
//!
//! A [`Network`] moves frames between stations, from the Ethernet header on and without the
//! checksum. It reads nothing of a frame but the addresses, which a switch learns, and the two bits
//! by which a switch signals congestion. Nothing happens by itself: [`Network::step`] goes on to
//! the next event that concerns a station, and returns the event.
//!
//! * Cables have latency, bandwidth, an MTU, and [`Faults`] in each direction: loss, duplication,
//!   corruption, reordering. They can be cut, healed, and changed while frames are on them.
//! * Switches learn addresses, flood frames to unknown ones, queue, mark congestion, and drop what
//!   exceeds their buffers. They can be told routes, of which several may be of equal cost.
//! * Stations have one interface and one timer. A partition keeps some stations from the others,
//!   and a restart empties a station.
//!
//! A [`Fabric`] is such a network with a NIC at each station, and optionally a connection manager
//! beside the NIC. An [`Ether`] is such a network with a device at each station, for programs that
//! sleep on devices and don't know that their time is virtual. With the feature `tokio`, the
//! function `passing` lets that time pass while a future runs.
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
//! use doorbell_simulation::{Event, Faults, LinkConfig, Network, Time};
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

mod ether;
mod fabric;
mod ids;
mod network;
mod parts;
mod random;
mod station;
#[allow(unsafe_code)]
mod sys;

pub use doorbell_core::time::Time;
pub use ether::{Ether, Pace, Station, Still};
#[cfg(feature = "tokio")]
pub use ether::{passes, passing, passing_in_steps};
pub use fabric::{Fabric, LeafSpine, LeafSpineSize, NodeId, Star, ready};
pub use ids::{LinkId, StationId, SwitchId};
pub use network::{Counters, End, Event, Network};
pub use parts::config::{Bandwidth, LinkConfig, SwitchConfig};
pub use parts::faults::{Faults, corrupt};
pub use random::{Luck, Odds};
