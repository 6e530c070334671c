//! What a machine has for devices: its interfaces, what each device could do on each of them, and
//! where it could not, why, and what would change that.
//!
//! Nothing is guessed: each device is opened for a moment, and says itself.
//!
//! ```no_run
//! for interface in doorbell_transports::discover::interfaces()? {
//!     println!("{}, MTU {}", interface.name, interface.mtu);
//!     for trial in interface.trials() {
//!         match trial.outcome {
//!             Ok(can) => println!("  {}: packets of {} bytes", trial.device, can.mtu.bytes()),
//!             Err(why) => println!("  {why}"),
//!         }
//!     }
//! }
//! # Ok::<(), std::io::Error>(())
//! ```

mod interface;
mod machine;
mod trial;

pub use interface::{Interface, Offloads, interfaces};
pub use machine::Machine;
pub use trial::{Trial, TrialError, shared_memory};

/// Something that could be better, and how.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Remark {
    /// What was found.
    pub found: String,
    /// What to do.
    pub advice: String,
}

impl Remark {
    fn new(found: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { found: found.into(), advice: advice.into() }
    }
}
