//! All measurements that were asked for, one after the other, each in processes of its own.

use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use anyhow::{Context, bail};
use serde::de::DeserializeOwned;

use crate::args::{Args, Device, System};
use crate::case::{CASES, Case};
use crate::idle::{self, Idle};
use crate::overload::{self, Overload};
use crate::report::{self, Figures};

/// How long a measurement may take beside what it measures: for its processes to start, to connect and
/// to warm up.
const REST: Duration = Duration::from_secs(20);

/// How long each of the idle clients may take to connect.
const CONNECTING: Duration = Duration::from_millis(50);

/// Runs all measurements. One that fails is told of, and the others go on; there is an error in the end.
pub fn run(args: &Args) -> anyhow::Result<()> {
    if let Some(clients) = args.idle {
        return run_idle(args, clients);
    }
    if args.overload {
        return run_overload(args);
    }
    let places = args.places();
    if places.is_empty() {
        bail!("none of the systems that were asked for has a device that was asked for");
    }
    let mut failed = 0;
    for case in args.cases() {
        let mut all = Vec::new();
        for &(system, device) in &places {
            match measure(args, system, device, case, args.time() + REST) {
                Ok(Some(line)) => {
                    let figures: Figures = parsed(&line)?;
                    if args.json {
                        println!("{}", line.trim());
                    }
                    all.push(figures);
                }
                // The client has said why there are no figures.
                Ok(None) => {}
                Err(why) => {
                    failed += 1;
                    eprintln!("error: {system} over {device}, `{}`: {why:#}", case.name);
                }
            }
        }
        if !args.json && !all.is_empty() {
            report::print(&case, &all);
        }
    }
    if failed > 0 {
        bail!("{failed} measurements failed, as told above");
    }
    Ok(())
}

fn run_idle(args: &Args, clients: u32) -> anyhow::Result<()> {
    let limit = REST + idle::TIME + CONNECTING * clients;
    let line = measure(args, System::Doorbell, Device::Udp, CASES[0], limit)?;
    let line = line.context("there are no figures")?;
    let idle: Idle = parsed(&line)?;
    if args.json {
        println!("{}", line.trim());
    } else {
        println!(
            "{} idle clients over {}: the server takes {:.2} % of a core and {:.1} KiB for each \
             client, which took {:.0} µs to connect",
            idle.clients,
            idle.device,
            idle.server_share * 100.0,
            idle.server_bytes_per_client / 1024.0,
            idle.connect_us
        );
    }
    Ok(())
}

fn run_overload(args: &Args) -> anyhow::Result<()> {
    let places = args.doorbells();
    if places.is_empty() {
        bail!("only Doorbell's servers are overloaded, on devices that they have");
    }
    let limit = REST + overload::REST + args.time();
    let mut all: Vec<Overload> = Vec::new();
    for (system, device) in places {
        let line = measure(args, system, device, CASES[0], limit);
        let line = line.with_context(|| format!("{system} over {device}"))?;
        let line = line.context("there are no figures")?;
        if args.json {
            println!("{}", line.trim());
        }
        all.push(parsed(&line)?);
    }
    if !args.json {
        report::print_overload(&all);
    }
    Ok(())
}

fn parsed<T: DeserializeOwned>(line: &str) -> anyhow::Result<T> {
    serde_json::from_str(line).with_context(|| format!("the client printed `{}`", line.trim()))
}

/// Has a client process measure, and returns what it printed: nothing if it has left the case out.
fn measure(
    args: &Args,
    system: System,
    device: Device,
    case: Case,
    limit: Duration,
) -> anyhow::Result<Option<String>> {
    let program = std::env::current_exe().context("looking for this program")?;
    let mut command = Command::new(program);
    command
        .arg("--end=client")
        .arg(format!("--system={system}"))
        .arg(format!("--device={device}"))
        .arg(format!("--case={}", case.name))
        .arg(format!("--seconds={}", args.time().as_secs_f64()))
        .arg(format!("--threads={}", args.threads))
        .arg(format!("--mtu={}", args.mtu))
        .args(args.idle.map(|clients| format!("--idle={clients}")))
        .args(args.shed_after().map(|_| "--overload".to_owned()))
        .args(args.shed_after().map(|wait| format!("--shed-after={}", wait.as_micros())))
        .stdin(Stdio::null())
        .stdout(Stdio::piped());
    let mut client = Client(command.spawn().context("starting the client process")?);
    let mut output = client.0.stdout.take().context("the client's output")?;
    let (told, ended) = mpsc::channel();
    std::thread::spawn(move || {
        let mut text = String::new();
        let read = output.read_to_string(&mut text);
        // Without anybody who waits, the time was over.
        let _ = told.send(read.map(|_| text));
    });
    let Ok(read) = ended.recv_timeout(limit) else {
        bail!("it was not done within {limit:?}, and was killed");
    };
    let text = read.context("reading what the client prints")?;
    let status = client.0.wait().context("waiting for the client process")?;
    if !status.success() {
        bail!("the client process failed ({status}); what it printed says why");
    }
    Ok((!text.is_empty()).then_some(text))
}

/// A client process, which does not outlive this; its server ends with it.
struct Client(Child);

impl Drop for Client {
    fn drop(&mut self) {
        // If the process has ended by itself, both are refused, and that is all.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
