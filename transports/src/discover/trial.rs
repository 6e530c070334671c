//! Opening a device for a moment, to see what it can do.

use doorbell_core::nic::Numbering;
use thiserror::Error;

use crate::any::{Spec, SpecError};
use crate::device::{Capabilities, Device};
use crate::open::OpenError;

/// What came of opening a device.
#[derive(Debug)]
pub struct Trial {
    /// What a program would open, as a [`Spec`].
    pub device: String,
    /// What it can do, or why it can't, and what would change that.
    pub outcome: Result<Capabilities, TrialError>,
}

/// A device that can't be opened.
#[derive(Debug, Error)]
pub enum TrialError {
    /// Its name is none.
    #[error(transparent)]
    Name(#[from] SpecError),
    /// It can't be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
}

impl Trial {
    /// Opens what `device` names.
    pub fn of(device: String) -> Self {
        let opened = || -> Result<Capabilities, TrialError> {
            let spec: Spec = device.parse()?;
            Ok(*spec.open(Numbering::default())?.capabilities())
        };
        Self { outcome: opened(), device }
    }
}

/// Joins shared memory for a moment, which needs no interface.
pub fn shared_memory() -> Trial {
    Trial::of(format!("shm:trial-{}", std::process::id()))
}
