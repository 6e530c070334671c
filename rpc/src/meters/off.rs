//! Meters of a program without the feature `metrics`, which count nothing.

use std::fmt::Display;

use crate::method::MethodId;
use crate::status::Code;

/// The meters of a method, which count nothing.
#[derive(Clone, Debug)]
pub struct Meters;

/// A call in progress that is not timed.
#[derive(Debug)]
pub struct Timed;

/// The meter of a channel's permits, which counts nothing.
#[derive(Debug)]
pub struct PermitMeter;

impl Meters {
    /// Whether meters count anything: they do not without the feature `metrics`.
    pub const ARE_KEPT: bool = false;

    pub fn of_client(_: MethodId) -> Self {
        Self
    }

    pub fn of_server(_: MethodId) -> Self {
        Self
    }

    pub fn begin(self) -> Timed {
        Timed
    }
}

impl Timed {
    pub fn end(&mut self, _: Code) {}
}

impl PermitMeter {
    pub fn new(_: &impl Display, _: usize) -> Self {
        Self
    }

    pub fn take(&self) {}

    pub fn give_back(&self) {}
}

pub fn refused(_: Code) {}

pub fn resent(_: MethodId) {}

pub fn reconnected(_: &impl Display) {}

pub fn body_sent(_: usize) {}

pub fn body_received(_: usize) {}
