//! The machine that is measured: its description for reports, and how quiet it is while nothing
//! runs.

mod noise;
mod profile;

use std::fs;

use doorbell_transports::discover;
use serde_json::{Value, json};

pub use noise::Noise;
pub use profile::{PROFILE, built_by};

use crate::processors;

/// The machine, as reports describe it.
#[derive(Clone, PartialEq, Debug)]
pub struct Machine {
    processor: String,
    processors: usize,
    /// How many ends of a measurement run on this machine: one or two.
    ends: usize,
    kernel: String,
    hypervisor: bool,
    governor: Option<String>,
    load: Option<String>,
    /// How much of the processors' time something else takes.
    pub noise: Noise,
}

impl Machine {
    /// Looks for a tenth of a second at this machine, which is to run one or two ends of a
    /// measurement.
    pub fn here(ends: usize) -> anyhow::Result<Self> {
        let machine = discover::Machine::here();
        let cpu = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let field = |name: &str| {
            let line = cpu.lines().find(|line| line.starts_with(name))?;
            Some(line.split_once(':')?.1.trim().to_owned())
        };
        let first_of = |path: &str| {
            let text = fs::read_to_string(path).ok()?;
            text.split_whitespace().next().map(ToOwned::to_owned)
        };
        let of_ends = (0..ends).map(processors::allowed).collect::<anyhow::Result<Vec<_>>>()?;
        Ok(Self {
            processor: field("model name").unwrap_or_else(|| std::env::consts::ARCH.to_owned()),
            processors: machine.processors,
            ends,
            kernel: machine.kernel,
            hypervisor: field("flags").is_some_and(|flags| flags.contains(" hypervisor")),
            governor: first_of("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
            load: first_of("/proc/loadavg"),
            noise: Noise::of(&of_ends)?,
        })
    }

    /// How many processors this process may use.
    pub fn processors(&self) -> usize {
        self.processors
    }

    /// Names and values for a reader.
    pub fn facts(&self) -> Vec<(String, String)> {
        let Self { processor, processors, ends, kernel, hypervisor, governor, load, noise } = self;
        let fact = |name: &str, value: String| (name.to_owned(), value);
        let guest = if *hypervisor { ", in a virtual machine" } else { "" };
        let bound = if *ends == 2 { "; the two ends are bound to the first two" } else { "" };
        let mut facts = vec![
            fact("Processor", format!("{processor}{guest}")),
            fact("Processors", format!("{processors}{bound}")),
            fact("Kernel", format!("Linux {kernel}")),
            fact("Noise", format!("{noise}, before the measurements")),
        ];
        facts.extend(governor.clone().map(|governor| fact("Frequency governor", governor)));
        facts.extend(load.clone().map(|load| fact("Load before", format!("{load} tasks"))));
        facts.push(fact("Doorbell", format!("{}, {}", env!("CARGO_PKG_VERSION"), built_by())));
        facts
    }

    /// The facts for a program.
    pub fn json(&self) -> Value {
        json!({
            "processor": self.processor,
            "processors": self.processors,
            "kernel": self.kernel,
            "virtual": self.hypervisor,
            "governor": self.governor,
            "load": self.load,
            "noise_share": self.noise.share,
            "noise_longest_us": self.noise.longest.as_nanos() as f64 / 1e3,
            "doorbell": env!("CARGO_PKG_VERSION"),
            "profile": PROFILE,
        })
    }

    /// Why the measurements should not be trusted, if there is a reason.
    pub fn warning(&self) -> Option<String> {
        self.noise.is_loud().then(|| {
            format!(
                "This machine is busy: before the measurements, {}. The intervals tell how much that \
                 disturbs; end what else runs, and measure again.",
                self.noise
            )
        })
    }
}
