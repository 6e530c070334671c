//! One measurement after the other, each by two processes of this program.

use std::fmt;
use std::process::{Command, Stdio};

use anyhow::{Context, bail};
use serde_json::Value;

use super::{Args, DEVICES, Layer};

/// How many rounds a measurement has, and a quick one.
const ROUNDS: [&str; 2] = ["41", "11"];

/// A layer on a device, and for Split-C by a carrier; without one, by the device's own.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Step {
    layer: Layer,
    device: String,
    carrier: Option<&'static str>,
}

/// What a measurement has found.
pub struct Line {
    pub step: Step,
    pub json: Value,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { layer, device, carrier } = self;
        write!(f, "{}", layer.name())?;
        if let Some(carrier) = carrier {
            write!(f, " {carrier}")?;
        }
        write!(f, " over {device}")
    }
}

impl Layer {
    pub const ALL: [Self; 3] = [Self::Verbs, Self::Am, Self::Splitc];

    pub fn name(self) -> &'static str {
        match self {
            Self::Verbs => "verbs",
            Self::Am => "am",
            Self::Splitc => "splitc",
        }
    }
}

/// All that is to be measured, in order.
pub fn steps(args: &Args) -> Vec<Step> {
    let devices = match args.device.is_empty() {
        true => DEVICES.map(str::to_owned).to_vec(),
        false => args.device.clone(),
    };
    let layers = if args.layer.is_empty() { Layer::ALL.to_vec() } else { args.layer.clone() };
    let mut steps = Vec::new();
    for device in devices {
        for &layer in &layers {
            let carriers: &[_] = match (layer, &*device) {
                (Layer::Splitc, "shm") => &[Some("mapped"), Some("one-sided"), Some("messages")],
                (Layer::Splitc, _) => &[Some("one-sided"), Some("messages")],
                _ => &[None],
            };
            let device = device.clone();
            steps.extend(carriers.iter().map(|&carrier| Step {
                layer,
                device: device.clone(),
                carrier,
            }));
        }
    }
    steps
}

/// Measures one step.
pub fn measure(step: &Step, quick: bool) -> anyhow::Result<Line> {
    let program = std::env::current_exe().context("looking for this program")?;
    let mut command = Command::new(program);
    command.args(["perf", &format!("logp_{}", step.layer.name()), "--pair", "--json"]);
    command.args(["--device", &step.device, "--iters", ROUNDS[usize::from(quick)]]);
    if let Some(carrier) = step.carrier {
        command.args(["--carrier", carrier]);
    }
    let output = command.stdin(Stdio::null()).output().context("starting the measurement")?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let said = said.trim().replace("doorbell: ", "");
        bail!("{}", if said.is_empty() { output.status.to_string() } else { said });
    }
    let json = serde_json::from_slice(&output.stdout).context("reading what was measured")?;
    Ok(Line { step: step.clone(), json })
}
