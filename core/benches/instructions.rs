//! How many instructions a message costs in the NIC, both sides together, as callgrind counts.
//!
//! `cargo bench -p doorbell-core --bench instructions` needs valgrind. The program runs itself
//! under it, once for each case, and only what the case repeats is counted.

use std::env;
use std::io;
use std::process::{Command, Output};

use doorbell_core::nic::WorkRequest;
use doorbell_core::wire::PathMtu;

#[allow(dead_code, reason = "each benchmark uses a part of it")]
mod joined;

use joined::{Carry, End, ask, by_cable, by_ring, send, send_burst, write};

const MESSAGES: usize = 16_000;

const DEVICES: [&str; 2] = ["RoCE v2", "lossless"];

/// What is counted, and how many messages of it are done at once.
const CASES: [(&str, usize); 5] = [
    ("a send of 16 bytes alone", 1),
    ("a send of 16 bytes in a burst of 16", 16),
    ("a write of 16 bytes alone", 1),
    ("a read of 8 bytes", 1),
    ("a fetch-and-add", 1),
];

#[inline(always)]
fn once<O: Carry>(a: &mut End<O>, b: &mut End<O>, case: usize) {
    let (address, rkey) = (b.memory.address, b.memory.rkey);
    match case {
        0 => send(a, b, 0),
        1 => send_burst(a, b, 0, CASES[1].1),
        2 => write(a, b, address, rkey),
        3 => {
            let into = a.memory.segment(0, 8);
            ask(a, b, WorkRequest::read(2, address, rkey, into));
        }
        _ => ask(a, b, WorkRequest::fetch_add(2, address, rkey, 1)),
    }
}

/// What callgrind counts: everything in here, by its name.
#[inline(never)]
fn counted<O: Carry>(a: &mut End<O>, b: &mut End<O>, case: usize) {
    for _ in 0..MESSAGES / CASES[case].1 {
        once(a, b, case);
    }
}

fn warm_and_counted<O: Carry>((mut a, mut b): (End<O>, End<O>), case: usize) {
    for _ in 0..1000 {
        once(&mut a, &mut b, case);
    }
    counted(&mut a, &mut b, case);
}

fn run(device: &str, case: usize) {
    match device {
        "lossless" => warm_and_counted(by_ring(1, PathMtu::Mtu4096), case),
        _ => warm_and_counted(by_cable(1, PathMtu::Mtu4096, 16), case),
    }
}

/// The line `Collected : N` that callgrind ends with.
fn collected(output: &Output) -> io::Result<u64> {
    let said = String::from_utf8_lossy(&output.stderr);
    let found = said.lines().find_map(|line| line.split_once("Collected :")?.1.trim().parse().ok());
    found.ok_or_else(|| io::Error::other(format!("callgrind counted nothing; it said:\n{said}")))
}

fn main() -> io::Result<()> {
    if let Ok(counted) = env::var("DOORBELL_COUNTED") {
        let (device, case) = counted.split_once('/').unwrap_or((&counted, "0"));
        run(device, case.parse().unwrap_or(0));
        return Ok(());
    }
    println!("instructions, both sides");
    for (device, index) in DEVICES.into_iter().flat_map(|d| (0..CASES.len()).map(move |i| (d, i))) {
        let output = Command::new("valgrind")
            .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
            .arg("--toggle-collect=instructions::counted*")
            .arg(env::current_exe()?)
            .env("DOORBELL_COUNTED", format!("{device}/{index}"))
            .output()
            .map_err(|why| {
                io::Error::other(format!("running valgrind, from Debian's package: {why}"))
            })?;
        let case = format!("{device}, {}", CASES[index].0);
        println!("  {case:<48}{:>6}", collected(&output)? / MESSAGES as u64);
    }
    Ok(())
}
