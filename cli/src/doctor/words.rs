//! Findings, for people.

use std::fmt::Write;

use doorbell_transports::Capabilities;
use doorbell_transports::discover::{Interface, Machine, Remark, Trial};

use super::findings::Findings;
use super::line;

pub fn of(findings: &Findings) -> String {
    let mut lines = Vec::new();
    lines.push(machine(&findings.machine, findings.line));
    lines.extend(findings.remarks.iter().map(remark));
    lines.extend(findings.here.iter().map(trial));
    for (it, trials) in &findings.interfaces {
        lines.push(String::new());
        lines.push(interface(it));
        lines.extend(it.remarks().iter().map(remark));
        lines.extend(trials.iter().map(trial));
    }
    lines.join("\n") + "\n"
}

fn machine(machine: &Machine, line: Option<f64>) -> String {
    let Machine { kernel, processors, .. } = machine;
    let mut text = format!("This machine: Linux {kernel}, {processors} processors");
    if let Some(nanos) = line {
        let how = line::how_far(nanos);
        // Writing to a string does not fail.
        let _ = write!(text, ", between which a cache line takes {nanos:.0} ns ({how})");
    }
    let raw = if machine.raw_sockets { "raw sockets" } else { "no raw sockets" };
    let namespaces = match machine.user_namespaces {
        true => "namespaces for anybody",
        false => "namespaces for root only",
    };
    text + &format!("; {raw}, {namespaces}")
}

fn interface(interface: &Interface) -> String {
    let Interface { name, mtu, up, driver, offloads, .. } = interface;
    let mut facts = vec![if *up { "up" } else { "down" }.to_owned(), format!("MTU {mtu}")];
    facts.extend(driver.as_ref().map(|driver| format!("driver {driver}")));
    facts.extend(interface.mac.map(|mac| mac.to_string()));
    facts.extend(interface.addresses.iter().map(|(address, bits)| format!("{address}/{bits}")));
    if offloads.segmentation {
        facts.push("cuts runs of UDP".to_owned());
    }
    if offloads.checksum {
        facts.push("computes checksums".to_owned());
    }
    format!("{name}: {}", facts.join(", "))
}

fn trial(trial: &Trial) -> String {
    match &trial.outcome {
        Ok(can) => format!("  + {}: {}", trial.device, abilities(can)),
        Err(why) => format!("  - {}: {why}", trial.device),
    }
}

fn abilities(can: &Capabilities) -> String {
    let mut text = format!("packets of {} bytes", can.mtu.bytes());
    if can.run > 1 {
        let who = if can.segmentation { "the interface" } else { "the kernel" };
        let _ = write!(text, ", {} at once, cut by {who}", can.run);
    }
    if can.lossless {
        text += ", lossless";
    }
    if can.mapping {
        text += ", memory that peers may map";
    }
    let _ = write!(text, "; at most {:.1} MB of memory", can.memory as f64 / 1e6);
    text
}

fn remark(remark: &Remark) -> String {
    format!("  ! {}: {}", remark.found, remark.advice)
}
