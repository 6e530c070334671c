//! The two processes of a measurement: a client, and the server that the client starts.

use std::fmt;
use std::future::pending;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::parent_id;
use std::process::{self, Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, bail};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;
use tokio::runtime::{Builder, Runtime};

use crate::args::{Args, End};
use crate::case::Case;
use crate::line::Line;
use crate::load;
use crate::report::Figures;
use crate::system::{self, Address, Caller, Measure, Place};
use crate::usage::Usage;
use crate::{cable, idle, overload, processors};

/// How long the server may take for what the client asks.
const PATIENCE: Duration = Duration::from_secs(15);

/// How long the load is put on before it is measured: connections have their windows and credits then.
const WARM_UP: Duration = Duration::from_millis(300);

/// The error of a call that a system does not take as it is configured: a case that is not measured
/// there.
#[derive(Debug)]
pub struct Refused(pub String);

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Refused {}

/// Measures a case as the client, and prints its figures in JSON.
pub fn client(args: &Args) -> anyhow::Result<()> {
    set_pdeathsig(Signal::SIGKILL).context("asking to end with the first process")?;
    let (place, case) = asked(args, End::Client, process::id())?;
    if place.device.is_wired() {
        cable::leave()?;
    }
    let own = processors::of(End::Client, args.threads)?;
    let (stream, other) = UnixStream::pair().context("a pair of sockets")?;
    let _server = Second::start(other)?;
    processors::bind(&own)?;
    let mut line = Line::over(stream)?;
    line.set_patience(Some(PATIENCE))?;
    if place.device.is_wired() {
        let server: u32 = line.hear().context("the server process's number")?;
        cable::lay(server, args.mtu)?;
        plug_in(&mut line, 0)?;
    }
    let server: Address = line.hear().context("where the server takes calls")?;
    let runtime = runtime(args)?;
    if args.idle.is_some() {
        return runtime.block_on(idle::client(&place, &server, &mut line));
    }
    if args.overload {
        return runtime.block_on(overload::client(&place, &server, args.time(), &mut line));
    }
    let measured = Measured { case: &case, time: args.time(), line: &mut line };
    match runtime.block_on(system::measure(&place, &server, measured)) {
        Ok(figures) => {
            let (system, device) = (place.system.to_string(), place.device.to_string());
            let figures = Figures { system, device, ..figures };
            println!("{}", serde_json::to_string(&figures).context("the figures in JSON")?);
            // What is in flight or connected ends with the process.
            process::exit(0)
        }
        Err(why) => match why.downcast_ref::<Refused>() {
            Some(refused) => {
                let Place { system, device, .. } = place;
                eprintln!("note: {system} over {device} refuses `{}`: {refused}", case.name);
                process::exit(0)
            }
            None => Err(why),
        },
    }
}

/// Serves as the server until the client has gone.
pub fn server(args: &Args) -> anyhow::Result<()> {
    set_pdeathsig(Signal::SIGKILL).context("asking to end with the client")?;
    let (place, _) = asked(args, End::Server, parent_id())?;
    processors::bind(&processors::of(End::Server, args.threads)?)?;
    let stream = io::stdin().as_fd().try_clone_to_owned().context("the line to the client")?;
    let mut line = Line::over(UnixStream::from(stream))?;
    if place.device.is_wired() {
        cable::leave()?;
        line.tell(&process::id())?;
        plug_in(&mut line, 1)?;
    }
    runtime(args)?.block_on(async {
        let serving = system::serve(&place).await?;
        line.tell(&serving.address)?;
        std::thread::spawn(move || tell_usage(line));
        pending::<anyhow::Result<()>>().await
    })
}

/// Tells the client what this process has used, each time that the client asks, and ends this process
/// when the client has gone.
fn tell_usage(mut line: Line) {
    while line.hear::<String>().is_ok() {
        let told = Usage::of_this_process().and_then(|usage| line.tell(&usage));
        if let Err(why) = told {
            eprintln!("server: {why:#}");
            break;
        }
    }
    process::exit(0)
}

/// Asks the server what it has used.
pub fn ask_usage(line: &mut Line) -> anyhow::Result<Usage> {
    line.tell(&"usage")?;
    line.hear().context("what the server has used")
}

/// The one system, device and case that a process is to measure.
fn asked(args: &Args, end: End, client: u32) -> anyhow::Result<(Place, Case)> {
    let (&[system], &[device], &[case]) = (&*args.system, &*args.device, &*args.case) else {
        bail!("a measurement has one system, one device and one case");
    };
    let clients = args.idle.map_or(1, |clients| clients as usize);
    let (size, mtu, shed_after) = (case.size, args.mtu, args.shed_after());
    let place = Place { end, system, device, size, mtu, client, clients, shed_after };
    Ok((place, case))
}

/// Takes this end's interface up, and waits until the other end has done so, too.
fn plug_in(line: &mut Line, end: usize) -> anyhow::Result<()> {
    line.meet("laid")?;
    cable::take_up(end)?;
    line.meet("up")?;
    cable::await_carrier(end)?;
    line.meet("plugged in")
}

fn runtime(args: &Args) -> anyhow::Result<Runtime> {
    let mut builder = match args.threads {
        1 => Builder::new_current_thread(),
        threads => {
            let mut builder = Builder::new_multi_thread();
            builder.worker_threads(threads);
            builder
        }
    };
    builder.enable_all().build().context("a runtime")
}

/// The measurement of a case, of any system's callers.
struct Measured<'m> {
    case: &'m Case,
    time: Duration,
    line: &'m mut Line,
}

impl Measure for Measured<'_> {
    type Measured = Figures;

    fn case(&self) -> &Case {
        self.case
    }

    async fn of<C: Caller>(self, callers: Vec<C>) -> anyhow::Result<Figures> {
        let Self { case, time, line } = self;
        let (callers, _) = load::put(case, callers, WARM_UP).await?;
        let server_before = ask_usage(line)?;
        let before = Usage::of_this_process()?;
        let (_callers, seen) = load::put(case, callers, time).await?;
        let after = Usage::of_this_process()?;
        let server_after = ask_usage(line)?;
        let used = [after.since(&before), server_after.since(&server_before)];
        Figures::of(case, seen, used)
    }
}

/// The server process, which does not outlive this.
struct Second(Child);

impl Second {
    fn start(stream: UnixStream) -> anyhow::Result<Self> {
        let program = std::env::current_exe().context("looking for this program")?;
        let arguments = std::env::args_os().skip(1).filter(|argument| argument != "--end=client");
        let mut command = Command::new(program);
        command.args(arguments).arg("--end=server").stdin(Stdio::from(OwnedFd::from(stream)));
        command.spawn().map(Self).context("starting the server process")
    }
}

impl Drop for Second {
    fn drop(&mut self) {
        // If the process has ended by itself, both are refused, and that is all.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
