//! The checks of this machine, and what they find.

use anyhow::Context;
use doorbell_transports::discover::{Interface, Machine, Probe, Remark, interfaces, shared_memory};

use super::line;

/// The findings of the checks.
pub struct Findings {
    pub machine: Machine,
    /// How long a cache line takes from one processor to another, in nanoseconds.
    pub line: Option<f64>,
    /// Devices that need no interface.
    pub here: Vec<Probe>,
    pub interfaces: Vec<(Interface, Vec<Probe>)>,
    pub remarks: Vec<Remark>,
}

impl Findings {
    pub fn gather() -> anyhow::Result<Self> {
        let machine = Machine::here();
        let mut remarks = machine.remarks();
        let line = line::crossing();
        remarks.extend(line.and_then(line::remark));
        let tried = |interface: Interface| {
            let probes = interface.probes();
            (interface, probes)
        };
        let interfaces =
            interfaces().context("listing interfaces")?.into_iter().map(tried).collect();
        Ok(Self { machine, line, here: vec![shared_memory()], interfaces, remarks })
    }

    pub fn probes(&self) -> impl Iterator<Item = &Probe> {
        self.here.iter().chain(self.interfaces.iter().flat_map(|(_, probes)| probes))
    }
}
