//! Devices around devices: what they carry is the inner device's, and something is done with it.
//!
//! | | |
//! |---|---|
//! | [`Faulty`] | loses, repeats, reorders, damages and delays packets, by a seed |
//! | [`Recorder`] | writes both directions to a capture that Wireshark opens |
//! | [`Traced`] | tells each packet as an event of [`tracing`] |
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
mod luck;
mod recorder;
mod traced;

pub use faulty::{Faults, FaultsError, Faulty, Struck};
pub use recorder::Recorder;
pub use traced::Traced;

/// What a wrapper leaves to the device inside.
macro_rules! leave_to_inside {
    ($($what:ident)*) => { $($crate::wrap::leave_to_inside!(@ $what);)* };
    (@ capabilities) => {
        fn capabilities(&self) -> &$crate::Capabilities {
            self.inside.capabilities()
        }
    };
    (@ settle) => {
        #[inline]
        fn settle(&mut self, owes: impl Fn(doorbell_core::encap::PathId) -> bool) {
            self.inside.settle(owes);
        }
    };
    (@ now) => {
        #[inline]
        fn now(&self) -> doorbell_core::time::Time {
            self.inside.now()
        }
    };
    (@ address) => {
        fn address(&self) -> &$crate::Address {
            self.inside.address()
        }
    };
    (@ reach) => {
        fn reach(
            &mut self,
            peer: &$crate::Address,
        ) -> Result<Option<doorbell_core::nic::Way>, $crate::ReachError> {
            self.inside.reach(peer)
        }
    };
    (@ readiness) => {
        fn readiness(&self) -> std::os::fd::BorrowedFd<'_> {
            self.inside.readiness()
        }
    };
    (@ arm) => {
        fn arm(&mut self, until: Option<doorbell_core::time::Time>) -> std::io::Result<()> {
            self.inside.arm(until)
        }
    };
    (@ disarm) => {
        fn disarm(&mut self) {
            self.inside.disarm();
        }
    };
    (@ trouble) => {
        fn trouble(&mut self) -> Option<$crate::Trouble> {
            self.inside.trouble()
        }
    };
    (@ statistics) => {
        fn statistics(&mut self) -> $crate::Statistics {
            self.inside.statistics()
        }
    };
    (@ grants) => {
        fn grant(
            &mut self,
            to: doorbell_core::encap::PathId,
            tag: u128,
            memory: &$crate::SharedMemory,
        ) -> Result<(), $crate::GrantError> {
            self.inside.grant(to, tag, memory)
        }

        fn peer_process(
            &mut self,
            link: doorbell_core::encap::PathId,
        ) -> Option<$crate::PeerProcess> {
            self.inside.peer_process(link)
        }

        fn granted(&mut self) -> Option<$crate::Grant> {
            self.inside.granted()
        }
    };
}
use leave_to_inside;
