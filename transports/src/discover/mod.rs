//! What a machine has for devices: its interfaces, what each device could do on each of them, and
//! why a device can't be opened, with what would change that.
//!
//! Nothing is guessed: each device is opened for a moment, and asked.
//!
//! ```no_run
//! for interface in doorbell_transports::discover::interfaces()? {
//!     println!("{}, MTU {}", interface.name, interface.mtu);
//!     for probe in interface.probes() {
//!         match probe.outcome {
//!             Ok(can) => println!("  {}: packets of {} bytes", probe.device, can.mtu.bytes()),
//!             Err(why) => println!("  {why}"),
//!         }
//!     }
//! }
//! # Ok::<(), std::io::Error>(())
//! ```

mod interface;
mod machine;
mod probe;
mod remark;

pub use interface::{Interface, Offloads, interfaces};
pub use machine::Machine;
pub use probe::{Probe, ProbeError, shared_memory};
pub use remark::Remark;
