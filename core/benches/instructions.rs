//! How many instructions a message costs in the NIC, both sides together, as callgrind counts.
//!
//! `cargo bench -p doorbell-core --bench instructions` needs valgrind. The program runs itself
//! under it, once for each case, and only what the case repeats is counted.

use std::env;
use std::io;
use std::process::{Command, Output};

use doorbell_core::wire::PathMtu;

#[allow(dead_code, reason = "each benchmark uses a part of it")]
mod joined;

use joined::{Carry, End, by_cable, by_ring, send, send_burst};

const MESSAGES: usize = 16_000;

#[inline]
fn send_as<O: Carry>(a: &mut End<O>, b: &mut End<O>, burst: usize) {
    match burst {
        1 => send(a, b, 0),
        _ => send_burst(a, b, 0, burst),
    }
}

/// What callgrind counts: everything in here, by its name.
#[inline(never)]
fn counted<O: Carry>(a: &mut End<O>, b: &mut End<O>, burst: usize) {
    for _ in 0..MESSAGES / burst {
        send_as(a, b, burst);
    }
}

fn warm_and_counted<O: Carry>((mut a, mut b): (End<O>, End<O>), burst: usize) {
    for _ in 0..1000 {
        send_as(&mut a, &mut b, burst);
    }
    counted(&mut a, &mut b, burst);
}

const CASES: [&str; 4] =
    ["RoCE v2, alone", "RoCE v2, in bursts of 16", "lossless, alone", "lossless, in bursts of 16"];

fn run(case: &str) {
    let burst = if case.ends_with("alone") { 1 } else { 16 };
    match case.starts_with("lossless") {
        true => warm_and_counted(by_ring(1, PathMtu::Mtu4096), burst),
        false => warm_and_counted(by_cable(1, PathMtu::Mtu4096, 16), burst),
    }
}

/// The line `Collected : N` that callgrind ends with.
fn collected(output: &Output) -> io::Result<u64> {
    let said = String::from_utf8_lossy(&output.stderr);
    let found = said.lines().find_map(|line| line.split_once("Collected :")?.1.trim().parse().ok());
    found.ok_or_else(|| io::Error::other(format!("callgrind counted nothing; it said:\n{said}")))
}

fn main() -> io::Result<()> {
    if let Ok(case) = env::var("DOORBELL_COUNTED") {
        run(&case);
        return Ok(());
    }
    println!("one 16-byte send, both sides, instructions");
    for case in CASES {
        let output = Command::new("valgrind")
            .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
            .arg("--toggle-collect=instructions::counted*")
            .arg(env::current_exe()?)
            .env("DOORBELL_COUNTED", case)
            .output()
            .map_err(|why| {
                io::Error::other(format!("running valgrind, from Debian's package: {why}"))
            })?;
        println!("  {case:<28}{:>6}", collected(&output)? / MESSAGES as u64);
    }
    Ok(())
}
