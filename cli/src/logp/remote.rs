//! Measurements between two machines, and how the two agree on what is measured.
//!
//! The machine that connects says which step comes next. The machine that listens opens its own
//! device of that kind, or says why not. Each has a process of its own for every step, which meets
//! the other at the same address.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use doorbell_measure::logp::line::Line;
use doorbell_measure::machine::Machine;
use doorbell_measure::runs::{failed, this_program};
use doorbell_measure::{interrupts, out};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, poll};
use serde_json::{Value, json};

use super::measure;
use super::steps::Step;

/// How long either end waits for the other's word.
const PATIENCE: Duration = Duration::from_secs(20);
/// For how many milliseconds an end waits at a time before it looks for an interrupt.
const MOMENT: u16 = 50;
/// The most bytes of a word.
const LONGEST: usize = 4096;
const NO_WORD: &str = "what the other end said is no word of logp's";

/// The connection on which the two ends talk, a line of JSON at a time.
struct Control {
    stream: TcpStream,
    /// The bytes that have come and were not heard yet: less than a word, or words that follow.
    came: Vec<u8>,
}

impl Control {
    fn over(stream: TcpStream) -> anyhow::Result<Self> {
        stream.set_nodelay(true).context("the connection to the other end")?;
        Ok(Self { stream, came: Vec::new() })
    }

    fn tell(&mut self, value: &Value) -> anyhow::Result<()> {
        writeln!(self.stream, "{value}").context("telling the other end what comes next")
    }

    /// Hears the other end's next word, for which it has the time `patience`, or any time. `None`
    /// if the other end has closed the connection.
    fn hear(&mut self, patience: Option<Duration>) -> anyhow::Result<Option<Value>> {
        let since = Instant::now();
        loop {
            if let Some(end) = self.came.iter().position(|byte| *byte == b'\n') {
                let word: Vec<u8> = self.came.drain(..=end).collect();
                return serde_json::from_slice(&word).map(Some).context(NO_WORD);
            }
            ensure!(self.came.len() <= LONGEST, "{NO_WORD}, but longer than {LONGEST} bytes");
            ensure!(!interrupts::is_interrupted(), "interrupted while waiting for the other end");
            if let Some(patience) = patience.filter(|patience| since.elapsed() > *patience) {
                bail!(
                    "the other end has said nothing for {patience:?}: whatever listens or connects \
                     there hangs, or is not `doorbell logp`"
                );
            }
            if self.is_readable()? {
                let mut piece = [0; 512];
                match self.stream.read(&mut piece).context("hearing from the other end")? {
                    0 => return Ok(None),
                    length => self.came.extend_from_slice(&piece[..length]),
                }
            }
        }
    }

    /// Waits for a moment until there is something to read, or the end.
    fn is_readable(&self) -> anyhow::Result<bool> {
        let mut fds = [PollFd::new(self.stream.as_fd(), PollFlags::POLLIN)];
        match poll(&mut fds, MOMENT) {
            Ok(ready) => Ok(ready > 0),
            Err(Errno::EINTR) => Ok(false),
            Err(why) => Err(why).context("waiting for the other end"),
        }
    }
}

/// The first word of each end: its version, and its machine as reports describe it.
fn greeting(here: &Machine) -> Value {
    json!({ "doorbell logp": env!("CARGO_PKG_VERSION"), "machine": here.facts() })
}

/// Makes sure that the other end is this program, and of the same version. Returns the description
/// of the other machine.
fn greet(control: &mut Control, here: &Machine) -> anyhow::Result<Vec<(String, String)>> {
    control.tell(&greeting(here))?;
    let theirs = control.hear(Some(PATIENCE))?;
    let theirs = theirs.context("the other end closed the connection before it said anything")?;
    let version = theirs["doorbell logp"].as_str();
    let version = version.context("the other end is not doorbell logp")?;
    let own = env!("CARGO_PKG_VERSION");
    ensure!(
        version == own,
        "the other end is doorbell {version}, and this one {own}: measure with the same on both"
    );
    serde_json::from_value(theirs["machine"].clone()).context("the other end's machine")
}

/// The machine that listens: it serves the one that connects, to its end.
pub fn listen(address: &str, devices: &[String]) -> anyhow::Result<()> {
    let machine = Machine::here(1)?;
    let listener = TcpListener::bind(address).with_context(|| format!("listening on {address}"))?;
    let here = listener.local_addr().context("the address to listen on")?;
    interrupts::doing("while waiting for the other end");
    out::note(format_args!("doorbell: waiting for `doorbell logp --connect` at {here}"));
    let (mut control, from) = loop {
        let (stream, from) = listener.accept().context("waiting for the other end")?;
        let greeted = Control::over(stream).and_then(|mut control| {
            greet(&mut control, &machine)?;
            Ok(control)
        });
        match greeted {
            Ok(control) => break (control, from),
            Err(why) => out::note(format_args!("doorbell: {from} is not served: {why:#}")),
        }
    };
    interrupts::doing("while measuring with the other end");
    out::note(format_args!("doorbell: measuring with {from}"));
    let here = control.stream.local_addr().context("this end's address")?;
    let devices: Vec<_> = devices.iter().map(|device| opened_on(device, here)).collect();
    while let Some(asked) = control.hear(None)? {
        let seconds = asked["seconds"].as_f64().unwrap_or(1.0);
        let Some(step) = Step::from_json(&asked, &devices) else {
            let (asked, own) = (&asked["device"], devices.join(", "));
            let why =
                format!("the end that listens has {own}, and no {asked}: name it by --device");
            control.tell(&json!({ "cannot": why }))?;
            continue;
        };
        control.tell(&json!("go"))?;
        if let Err(why) = serve(&step, seconds, &listener) {
            out::note(format_args!("doorbell: {step}: {why:#}"));
        }
    }
    Ok(())
}

/// Runs this end of a step in a process that accepts the other's next connection.
fn serve(step: &Step, seconds: f64, listener: &TcpListener) -> anyhow::Result<()> {
    let mut command = this_program()?;
    let listener = listener.try_clone().context("a second handle of the address")?;
    command.args(step.arguments(seconds)).arg("--accept");
    command.stdin(Stdio::from(OwnedFd::from(listener))).stdout(Stdio::null());
    let output = command.output().context("starting the measurement")?;
    match output.status.success() {
        true => Ok(()),
        false => Err(failed(output.status, &output.stderr)),
    }
}

/// The machine that connects: it measures, and prints.
pub struct Connected {
    control: Control,
    address: String,
    here: SocketAddr,
    /// The description of the other machine, as reports show it.
    pub machine: Vec<(String, String)>,
}

impl Connected {
    pub fn to(address: &str, machine: &Machine) -> anyhow::Result<Self> {
        interrupts::doing("while waiting for the other end");
        let stream = TcpStream::connect(address).with_context(|| {
            format!("connecting to {address}: start `doorbell logp --listen` there first")
        })?;
        let here = stream.local_addr().context("this end's address")?;
        let mut control = Control::over(stream)?;
        let greeted = greet(&mut control, machine);
        let machine = greeted.with_context(|| format!("measuring with {address}"))?;
        Ok(Self { control, address: address.to_owned(), here, machine })
    }

    /// Measures a step together with the other machine.
    pub fn measure(&mut self, step: &Step, seconds: f64) -> anyhow::Result<Line> {
        let mut asked = step.to_json();
        asked["seconds"] = seconds.into();
        self.control.tell(&asked)?;
        let answer = self.control.hear(Some(PATIENCE))?.context("the other end has gone")?;
        if answer != json!("go") {
            bail!("{}", answer["cannot"].as_str().unwrap_or("the other end will not measure that"));
        }
        let device = opened_on(&step.device, self.here);
        measure::connected(&Step { device, ..step.clone() }, seconds, &self.address)
    }
}

/// A device with what it is opened on: of UDP that is this end's address towards the other, unless
/// somebody has named another.
fn opened_on(device: &str, here: SocketAddr) -> String {
    match device {
        "udp" => format!("udp:{}", SocketAddr::new(here.ip(), 0)),
        device => device.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The error was that of the system: "Resource temporarily unavailable (os error 11)".
    #[test]
    fn an_end_that_says_nothing_in_time_is_told_in_words() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let mut other = TcpStream::connect(address).expect("somebody listens");
        let (stream, _) = listener.accept().expect("somebody connects");
        let mut control = Control::over(stream).expect("a connection");
        other.write_all(b"\"half of a word").expect("room for some bytes");
        let why = control.hear(Some(Duration::from_millis(1))).expect_err("the rest never comes");
        let told = format!("{why:#}");
        assert!(told.starts_with("the other end has said nothing for 1ms"), "{told}");
        assert!(!told.contains("os error"), "{told}");
        other.write_all(b"\"\n1\n").expect("room for some bytes");
        let mut hear = || control.hear(Some(Duration::from_secs(20))).expect("a word is there");
        assert_eq!((hear(), hear()), (Some(json!("half of a word")), Some(json!(1))));
    }
}
