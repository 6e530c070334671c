//! `doorbell doctor`: tells what works on this machine, what does not, why, and what to do about
//! it.
//!
//! `findings` makes the checks. `line` measures how fast two processors pass each other a cache
//! line, which no message can beat, and `words` prints the findings for people.

mod findings;
mod line;
mod words;

use anyhow::bail;
use doorbell_measure::files;
use doorbell_measure::out::{self, SCHEMA};
use doorbell_transports::discover::{Interface, Probe, Remark};
use serde_json::{Value, json};

use findings::Findings;

/// Tells what works on this machine, what does not, why, and what to do about it.
///
/// Each device is opened for a moment on each interface. Nothing is sent, and nothing stays
/// changed. The exit status is 0 if at least one device works.
#[derive(clap::Args)]
pub struct Args {
    /// One JSON value instead of words
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args) -> anyhow::Result<()> {
    let findings = Findings::gather()?;
    match args.json {
        true => out::print(&format!("{}\n", json(&findings)))?,
        false => out::show(&words::of(&findings, files::terminal_width()))?,
    }
    if !findings.probes().any(|probe| probe.outcome.is_ok()) {
        bail!("no device works here; what is said of each tells what to do");
    }
    Ok(())
}

fn json(findings: &Findings) -> Value {
    let Findings { machine, line, here, interfaces, remarks } = findings;
    let interfaces: Vec<_> = interfaces.iter().map(|(it, probes)| interface(it, probes)).collect();
    json!({
        "schema": SCHEMA,
        "kernel": machine.kernel,
        "processors": machine.processors,
        "cache_line_ns": line,
        "raw_sockets": machine.raw_sockets,
        "user_namespaces": machine.user_namespaces,
        "rmem_max": machine.receive_buffer,
        "wmem_max": machine.send_buffer,
        "rdma": machine.rdma,
        "remarks": remarks.iter().map(remark).collect::<Vec<_>>(),
        "devices": here.iter().map(probe).collect::<Vec<_>>(),
        "interfaces": interfaces,
    })
}

fn interface(interface: &Interface, probes: &[Probe]) -> Value {
    let addresses = interface.addresses.iter().map(|(address, bits)| format!("{address}/{bits}"));
    json!({
        "name": interface.name,
        "mac": interface.mac.map(|mac| mac.to_string()),
        "mtu": interface.mtu,
        "up": interface.up,
        "running": interface.running,
        "addresses": addresses.collect::<Vec<_>>(),
        "driver": interface.driver,
        "segmentation": interface.offloads.segmentation,
        "checksum": interface.offloads.checksum,
        "remarks": interface.remarks().iter().map(remark).collect::<Vec<_>>(),
        "devices": probes.iter().map(probe).collect::<Vec<_>>(),
    })
}

fn probe(probe: &Probe) -> Value {
    match &probe.outcome {
        Err(why) => json!({ "device": probe.device, "works": false, "why": why.to_string() }),
        Ok(can) => json!({
            "device": probe.device,
            "works": true,
            "mtu": can.mtu.bytes(),
            "run": can.run,
            "segmentation": can.segmentation,
            "checksum": can.checksum,
            "lossless": can.lossless,
            "mapping": can.mapping,
            "memory": can.memory,
        }),
    }
}

fn remark(remark: &Remark) -> Value {
    json!({ "found": remark.found, "advice": remark.advice })
}
