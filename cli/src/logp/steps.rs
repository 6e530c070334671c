//! What is measured: layers on devices, one after the other.

use std::fmt;

use clap::ValueEnum;
use serde_json::{Value, json};

/// A layer that sends messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Layer {
    /// Sends and receives of the NIC
    Verbs,
    /// Requests and replies of Active Messages
    Am,
    /// Split-phase gets of Split-C, by each carrier
    Splitc,
}

impl Layer {
    const ALL: [Self; 3] = [Self::Verbs, Self::Am, Self::Splitc];

    pub fn name(self) -> &'static str {
        match self {
            Self::Verbs => "verbs",
            Self::Am => "am",
            Self::Splitc => "splitc",
        }
    }
}

/// A layer on a device; for Split-C with a carrier.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Step {
    pub layer: Layer,
    /// The device, between machines with what it is opened on, as in packet:eth0.
    pub device: String,
    pub carrier: Option<&'static str>,
}

/// The carriers of Split-C over shared memory, the default one first.
const OVER_SHARED_MEMORY: [&str; 3] = ["mapped", "one-sided", "messages"];
/// The carriers of Split-C over networks, the default one first: messages for short accesses and
/// RDMA for long ones.
const OVER_NETWORKS: [&str; 3] = ["mixed", "one-sided", "messages"];

impl Step {
    /// The arguments with which `doorbell perf` measures the step for `seconds` seconds.
    pub fn arguments(&self, seconds: f64) -> Vec<String> {
        let test = format!("logp_{}", self.layer.name());
        let seconds = seconds.to_string();
        let mut all =
            vec!["perf", &test, "--json", "--seconds", &seconds, "--device", &self.device];
        if let Some(carrier) = self.carrier {
            all.extend(["--carrier", carrier]);
        }
        all.into_iter().map(ToOwned::to_owned).collect()
    }

    /// The kind of the device, without the place on which each machine opens it.
    pub fn kind(&self) -> &str {
        kind(&self.device)
    }

    /// The step as JSON, by which another machine is asked for it.
    pub fn to_json(&self) -> Value {
        json!({ "layer": self.layer.name(), "device": self.kind(), "carrier": self.carrier })
    }

    /// The step that another machine asks for, on this machine's device of the same kind. Returns
    /// `None` if this machine has no such device, or the JSON is no step.
    pub fn from_json(asked: &Value, devices: &[String]) -> Option<Self> {
        let layer = Layer::ALL.into_iter().find(|layer| asked["layer"] == layer.name())?;
        let carrier = match &asked["carrier"] {
            Value::Null => None,
            named => {
                let mut all = OVER_SHARED_MEMORY.into_iter().chain(OVER_NETWORKS);
                Some(all.find(|carrier| named == carrier)?)
            }
        };
        let device = devices.iter().find(|device| asked["device"] == kind(device))?;
        Some(Self { layer, device: device.clone(), carrier })
    }
}

/// The part of a device's name before the first colon.
fn kind(device: &str) -> &str {
    device.split(':').next().unwrap_or(device)
}

/// The steps that measure some layers on some devices, in order; all layers if none is named.
pub fn all(devices: &[String], layers: &[Layer]) -> Vec<Step> {
    let layers = if layers.is_empty() { &Layer::ALL[..] } else { layers };
    let mut steps = Vec::new();
    for device in devices {
        for &layer in layers {
            let carriers: &[_] = match (layer, kind(device)) {
                (Layer::Splitc, "shm") => &OVER_SHARED_MEMORY.map(Some),
                (Layer::Splitc, _) => &OVER_NETWORKS.map(Some),
                _ => &[None],
            };
            let step = |&carrier| Step { layer, device: device.clone(), carrier };
            steps.extend(carriers.iter().map(step));
        }
    }
    steps
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.layer.name())?;
        if let Some(carrier) = self.carrier {
            write!(f, " {carrier}")?;
        }
        write!(f, " over {}", self.device)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_measured_on_the_other_machines_device_of_the_same_kind() {
        let steps = all(&["packet:eth0".to_owned()], &[Layer::Splitc]);
        assert_eq!(steps.len(), 3);
        let theirs = ["udp:10.0.0.2:0".to_owned(), "packet:eth7".to_owned()];
        let there = Step::from_json(&steps[1].to_json(), &theirs).expect("packet is there");
        assert_eq!((&*there.device, there.carrier), ("packet:eth7", Some("one-sided")));
        assert_eq!(Step::from_json(&steps[1].to_json(), &theirs[..1]), None);
        assert_eq!(Step::from_json(&json!({ "layer": "tcp", "device": "udp" }), &theirs), None);
    }
}
