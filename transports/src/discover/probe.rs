//! Probes, which open a device for a moment to see what it can do.

use doorbell_core::nic::Numbering;
use thiserror::Error;

use crate::any::{Spec, SpecError};
use crate::device::{Capabilities, Device};
use crate::open::DeviceError;

/// The outcome of opening a device for a moment.
#[derive(Debug)]
pub struct Probe {
    /// The device, as a program would write it as a [`Spec`].
    pub device: String,
    /// The capabilities of the device; or why it can't be opened, and what would change that.
    pub outcome: Result<Capabilities, ProbeError>,
}

/// The error of a device that can't be opened.
#[derive(Debug, Error)]
pub enum ProbeError {
    /// The text names no device.
    #[error(transparent)]
    Name(#[from] SpecError),
    /// The device can't be opened.
    #[error(transparent)]
    Open(#[from] DeviceError),
}

impl Probe {
    /// Opens the device that a text names, and closes it again.
    pub fn of(device: String) -> Self {
        let opened = || -> Result<Capabilities, ProbeError> {
            let spec: Spec = device.parse()?;
            Ok(*spec.open(Numbering::default())?.capabilities())
        };
        Self { outcome: opened(), device }
    }
}

/// Joins shared memory for a moment, for which no interface is needed.
pub fn shared_memory() -> Probe {
    Probe::of(format!("shm:probe-{}", std::process::id()))
}
