//! The checks of this machine, and what they find.

use anyhow::Context;
use doorbell_transports::discover::{Interface, Machine, Remark, Trial, interfaces, shared_memory};

use super::line;

/// The findings of the checks.
pub struct Findings {
    pub machine: Machine,
    /// How long a cache line takes from one processor to another, in nanoseconds.
    pub line: Option<f64>,
    /// Devices that need no interface.
    pub here: Vec<Trial>,
    pub interfaces: Vec<(Interface, Vec<Trial>)>,
    pub remarks: Vec<Remark>,
}

impl Findings {
    pub fn gather() -> anyhow::Result<Self> {
        let machine = Machine::here();
        let mut remarks = machine.remarks();
        let line = line::crossing();
        remarks.extend(line.and_then(line::remark));
        let tried = |interface: Interface| {
            let trials = interface.trials();
            (interface, trials)
        };
        let interfaces =
            interfaces().context("listing interfaces")?.into_iter().map(tried).collect();
        Ok(Self { machine, line, here: vec![shared_memory()], interfaces, remarks })
    }

    pub fn trials(&self) -> impl Iterator<Item = &Trial> {
        self.here.iter().chain(self.interfaces.iter().flat_map(|(_, trials)| trials))
    }
}
