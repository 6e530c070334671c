//! Measurements between two machines: what these say to each other beside what is measured.
//!
//! The machine that connects says which step comes next. The machine that listens opens its own
//! device of that kind, or says why not. Each has a process of its own for every step, which meets
//! the other at the same address.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use serde_json::{Value, json};

use super::line::Line;
use super::measure;
use super::steps::Step;
use crate::runs::{failed, this_program};

/// How long either end waits for the other's word.
const PATIENCE: Duration = Duration::from_secs(20);
/// The most bytes of a word.
const LONGEST: u64 = 4096;

/// What one end says to the other, a line of JSON at a time.
struct Control {
    from: BufReader<TcpStream>,
    to: TcpStream,
}

impl Control {
    fn over(stream: TcpStream) -> anyhow::Result<Self> {
        stream.set_nodelay(true).context("the connection to the other end")?;
        let from = stream.try_clone().context("a second handle of the connection")?;
        Ok(Self { from: BufReader::new(from), to: stream })
    }

    fn tell(&mut self, value: &Value) -> anyhow::Result<()> {
        writeln!(self.to, "{value}").context("telling the other end what comes next")
    }

    /// The other end's next word; `None` if it has ended. Waits for so long at the most, or for ever.
    fn hear(&mut self, patience: Option<Duration>) -> anyhow::Result<Option<Value>> {
        self.to.set_read_timeout(patience).context("the connection to the other end")?;
        let mut line = String::new();
        let read = (&mut self.from).take(LONGEST).read_line(&mut line);
        let read = read.context("hearing from the other end, which has said nothing in time")?;
        if read == 0 {
            return Ok(None);
        }
        serde_json::from_str(&line)
            .map(Some)
            .context("what the other end said is no word of logp's")
    }
}

/// What each end says first.
fn greeting() -> Value {
    json!({ "doorbell logp": env!("CARGO_PKG_VERSION") })
}

/// Makes sure that the other end is this program, and of the same version.
fn greet(control: &mut Control) -> anyhow::Result<()> {
    control.tell(&greeting())?;
    let theirs = control.hear(Some(PATIENCE))?;
    let theirs = theirs.context("the other end closed the connection before it said anything")?;
    let version = theirs["doorbell logp"].as_str();
    let version = version.context("the other end is not doorbell logp")?;
    let own = env!("CARGO_PKG_VERSION");
    ensure!(
        version == own,
        "the other end is doorbell {version}, and this one {own}: measure with the same on both"
    );
    Ok(())
}

/// The machine that listens: it serves the one that connects, to its end.
pub fn listen(address: &str, devices: &[String]) -> anyhow::Result<()> {
    let listener = TcpListener::bind(address).with_context(|| format!("listening on {address}"))?;
    let here = listener.local_addr().context("the address to listen on")?;
    eprintln!("doorbell: waiting for `doorbell logp --connect` at {here}");
    let (mut control, from) = loop {
        let (stream, from) = listener.accept().context("waiting for the other end")?;
        let greeted = Control::over(stream).and_then(|mut control| {
            greet(&mut control)?;
            Ok(control)
        });
        match greeted {
            Ok(control) => break (control, from),
            Err(why) => eprintln!("doorbell: {from} is not served: {why:#}"),
        }
    };
    eprintln!("doorbell: measuring with {from}");
    let here = control.to.local_addr().context("this end's address")?;
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
            eprintln!("doorbell: {step}: {why:#}");
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
}

impl Connected {
    pub fn to(address: &str) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(address).with_context(|| {
            format!("connecting to {address}: start `doorbell logp --listen` there first")
        })?;
        let here = stream.local_addr().context("this end's address")?;
        let mut control = Control::over(stream)?;
        greet(&mut control).with_context(|| format!("measuring with {address}"))?;
        Ok(Self { control, address: address.to_owned(), here })
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
