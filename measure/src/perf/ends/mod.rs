//! The two processes of a measurement on this machine, each on a processor of its own, and the
//! `cable` between them. `peer` is the stream by which the two ends agree.

pub(crate) mod cable;
pub(crate) mod peer;

use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::parent_id;
use std::process::{self, Child, Stdio};
use std::time::Duration;

use anyhow::{Context, bail};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;
use serde_json::json;

use crate::{processors, runs};
use peer::{GONE, Peer};

/// The interfaces of the two ends.
const INTERFACES: [&str; 2] = ["bell0", "bell1"];
/// The addresses of the two ends, as the yardstick's are.
pub const ADDRESSES: [IpAddr; 2] =
    [IpAddr::V4(Ipv4Addr::new(10, 79, 0, 1)), IpAddr::V4(Ipv4Addr::new(10, 79, 0, 2))];

/// Runs the first end: starts the second process, lays a cable to it if one is needed, with
/// interfaces of the MTU `cable`, and plays.
pub fn first(
    cable: Option<u32>,
    plays: impl FnOnce(&mut Peer) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    if cable.is_some() {
        cable::leave()?;
    }
    let (stream, other) = UnixStream::pair().context("a pair of sockets")?;
    let own = processors::allowed(0)?;
    let mut second = Second::start(other)?;
    processors::bind(own)?;
    let mut peer = Peer::over(stream, true)?;
    if let Some(mtu) = cable {
        // It tells its process number when it has left for a namespace of its own.
        let far = peer.hear()?.as_u64().context("the second process's number")?;
        cable::lay(0, INTERFACES, far, mtu)?;
        plug_in(mtu, &mut peer, 0)?;
    }
    plays(&mut peer)?;
    second.end()
}

/// Runs the second end, in the process that the first end has started.
pub fn second(
    cable: Option<u32>,
    plays: impl FnOnce(&mut Peer) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    set_pdeathsig(Signal::SIGKILL).context("asking to end with the first process")?;
    processors::bind(processors::allowed(1)?)?;
    let stream = io::stdin().as_fd().try_clone_to_owned().context("the first process's socket")?;
    let mut peer = Peer::over(UnixStream::from(stream), false)?;
    if let Some(mtu) = cable {
        cable::leave()?;
        peer.tell(&json!(process::id()))?;
        plug_in(mtu, &mut peer, 1)?;
    }
    let played = plays(&mut peer);
    if played.as_ref().is_err_and(|why| why.to_string() == GONE) {
        // Of a process that ends the system closes the files first, and sends the signal by which
        // this one ends in silence next. Who is still here then has something to say.
        std::thread::sleep(SIGNALLED);
    }
    played
}

/// How long the signal of the first process's end may come after the end of its files.
const SIGNALLED: Duration = Duration::from_secs(1);

/// Returns the processor for an end's NIC, if each of the two ends has one beside those of their
/// programs. It is to be asked before this process is bound to one.
pub fn spare(end: usize) -> Option<usize> {
    processors::allowed(3).and_then(|_| processors::allowed(2 + end)).ok()
}

/// Returns the device of an end, with what it is opened on.
pub fn device(device: &str, end: usize) -> String {
    match device {
        "shm" => {
            // The first process's number, which both know.
            let first = if end == 0 { process::id() } else { parent_id() };
            format!("shm:perf-{first}/{end}")
        }
        "udp" => format!("udp:{}:4791", ADDRESSES[end]),
        device => format!("{device}:{}", INTERFACES[end]),
    }
}

/// Takes this end's interface up, and waits until the other end has done so, too.
fn plug_in(mtu: u32, peer: &mut Peer, end: usize) -> anyhow::Result<()> {
    peer.swap(&json!("laid"))?;
    cable::take_up(INTERFACES[end], ADDRESSES[end], mtu)?;
    peer.swap(&json!("up"))?;
    cable::await_carrier(INTERFACES[end])?;
    peer.swap(&json!("plugged in")).map(drop)
}

/// The second process, which does not outlive this process.
struct Second(Child);

impl Second {
    fn start(stream: UnixStream) -> anyhow::Result<Self> {
        let mut command = runs::this_program()?;
        command.args(std::env::args_os().skip(1)).arg("--end");
        let child = command.stdin(Stdio::from(OwnedFd::from(stream))).spawn();
        child.map(Self).context("starting the second process")
    }

    /// Waits for the second process's end, which must be a good one.
    fn end(&mut self) -> anyhow::Result<()> {
        let status = self.0.wait().context("waiting for the second process")?;
        if !status.success() {
            bail!("the second process failed ({status})");
        }
        Ok(())
    }
}

impl Drop for Second {
    fn drop(&mut self) {
        // If the second process has ended, both calls are refused, and nothing is left to do.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
