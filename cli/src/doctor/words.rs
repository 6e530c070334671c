//! Findings, for people.

use std::fmt::Write;

use anstyle::Style;
use doorbell_measure::out::{BAD, CAUTION, GOOD, HEAD, styled, wrapped};
use doorbell_transports::Capabilities;
use doorbell_transports::discover::{Interface, Machine, Probe, Remark};

use super::findings::Findings;
use super::line;

/// The findings for a terminal of a width, or in lines of any length.
pub fn of(findings: &Findings, width: Option<usize>) -> String {
    let mut lines = Vec::new();
    lines.push(machine(&findings.machine, findings.line));
    lines.extend(findings.remarks.iter().map(remark));
    lines.extend(findings.here.iter().map(probe));
    for (it, probes) in &findings.interfaces {
        lines.push(String::new());
        lines.push(interface(it));
        lines.extend(it.remarks().iter().map(remark));
        lines.extend(probes.iter().map(probe));
    }
    wrapped(&(lines.join("\n") + "\n"), width.unwrap_or(usize::MAX), "      ")
}

fn machine(machine: &Machine, line: Option<f64>) -> String {
    let Machine { kernel, processors, .. } = machine;
    let head = styled("This machine:", HEAD);
    let mut text = format!("{head} Linux {kernel}, {processors} processors");
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
    format!("{} {}", styled(&format!("{name}:"), HEAD), facts.join(", "))
}

fn probe(probe: &Probe) -> String {
    match &probe.outcome {
        Ok(can) => item("+", GOOD, &probe.device, &abilities(can)),
        Err(why) => item("-", BAD, &probe.device, &why.to_string()),
    }
}

/// A line with a mark in a style.
fn item(mark: &str, style: Style, what: &str, told: &str) -> String {
    format!("  {} {what}: {told}", styled(mark, style))
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
    item("!", CAUTION, &remark.found, &remark.advice)
}
