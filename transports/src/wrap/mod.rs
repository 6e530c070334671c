//! Devices around devices: each carries what the device inside carries, and does something with it.
//!
//! | | |
//! |---|---|
//! | [`Faulty`] | loses, repeats, reorders, damages and delays packets, by a seed |
//! | [`Recorder`] | writes both directions to a capture that Wireshark opens |
//! | [`Traced`] | records each packet as an event of [`tracing`] |
//!
//! Each is a [`Device`](crate::Device), so they may stand around each other:
//!
//! ```no_run
//! use std::io::BufWriter;
//!
//! use doorbell_core::nic::Numbering;
//! use doorbell_transports::packet::Packet;
//! use doorbell_transports::wrap::{Faults, Faulty, Recorder};
//!
//! let device = Packet::open("eth0", Numbering::default())?;
//! let device = Recorder::new(device, BufWriter::new(std::fs::File::create("wire.pcapng")?))?;
//! let device = Faulty::new(device, Faults { loss: 0.01, ..Faults::NONE }, 42)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod faulty;
mod held;
mod inner;
mod recorder;
mod splitmix;
mod traced;

pub use faulty::{FaultCounts, Faults, FaultsError, Faulty};
pub use recorder::Recorder;
pub use traced::Traced;
