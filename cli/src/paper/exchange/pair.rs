//! The two processes of an exchange, and the cable between them.

use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::parent_id;
use std::process::{self, Child, Stdio};

use anyhow::{Context, bail};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;
use serde_json::json;

use super::args::{Args, Protocol};
use crate::perf::cable;
use crate::perf::peer::Peer;
use crate::{processors, runs};

/// The interfaces of the two ends, and their addresses.
const INTERFACES: [&str; 2] = ["bell0", "bell1"];
const ADDRESSES: [IpAddr; 2] =
    [IpAddr::V4(Ipv4Addr::new(10, 79, 1, 1)), IpAddr::V4(Ipv4Addr::new(10, 79, 1, 2))];

/// Where a process of an exchange runs.
pub struct Where {
    /// Its device, with what that is opened on.
    pub device: String,
    /// The address of its sockets.
    pub here: IpAddr,
    /// Whether this is the process that measures.
    pub leads: bool,
    /// The processor for a thread that works for the program. With two processors, that is the other
    /// program's.
    pub thread: usize,
    /// Whether that processor has nothing else to do.
    pub is_alone: bool,
}

impl Where {
    fn new(args: &Args, end: usize) -> anyhow::Result<Self> {
        let spare = processors::allowed(3).and_then(|_| processors::allowed(2 + end));
        let is_alone = spare.is_ok();
        let thread = spare.or_else(|_| processors::allowed(1))?;
        let device = match args.device.as_str() {
            "shm" => {
                let first = if end == 0 { process::id() } else { parent_id() };
                format!("shm:paper-{first}/{end}")
            }
            "udp" => format!("udp:{}:4791", ADDRESSES[end]),
            device => format!("{device}:{}", INTERFACES[end]),
        };
        Ok(Self { device, here: ADDRESSES[end], leads: end == 0, thread, is_alone })
    }
}

/// Runs the first process: starts the other, and lays a cable to it where one is needed.
pub fn first(
    args: &Args,
    plays: impl FnOnce(&mut Peer, &Where) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let is_wired = is_wired(args);
    if is_wired {
        cable::leave()?;
    }
    let (stream, other) = UnixStream::pair().context("a pair of sockets")?;
    let place = Where::new(args, 0)?;
    let own = processors::allowed(0)?;
    let mut second = Second::start(other)?;
    processors::bind(own)?;
    let mut peer = Peer::over(stream, true)?;
    if is_wired {
        let far = peer.hear()?.as_u64().context("the second process's number")?;
        cable::lay(0, INTERFACES, far, args.mtu)?;
        plug_in(args, &mut peer, 0)?;
    }
    plays(&mut peer, &place)?;
    second.end()
}

/// Runs the second process.
pub fn second(
    args: &Args,
    plays: impl FnOnce(&mut Peer, &Where) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    set_pdeathsig(Signal::SIGKILL).context("asking to end with the first process")?;
    let place = Where::new(args, 1)?;
    processors::bind(processors::allowed(1)?)?;
    let stream = io::stdin().as_fd().try_clone_to_owned().context("the first process's socket")?;
    let mut peer = Peer::over(UnixStream::from(stream), false)?;
    if is_wired(args) {
        cable::leave()?;
        peer.tell(&json!(process::id()))?;
        plug_in(args, &mut peer, 1)?;
    }
    plays(&mut peer, &place)
}

/// Whether the two need a network between them.
fn is_wired(args: &Args) -> bool {
    args.protocol == Protocol::Tcp || args.device != "shm"
}

/// Takes this end's interface up, and waits until the other end has done so, too.
fn plug_in(args: &Args, peer: &mut Peer, end: usize) -> anyhow::Result<()> {
    peer.swap(&json!("laid"))?;
    cable::take_up(INTERFACES[end], ADDRESSES[end], args.mtu)?;
    peer.swap(&json!("up"))?;
    cable::await_carrier(INTERFACES[end])?;
    peer.swap(&json!("plugged in")).map(drop)
}

/// The second process, which does not outlive this.
struct Second(Child);

impl Second {
    fn start(stream: UnixStream) -> anyhow::Result<Self> {
        let mut command = runs::this_program()?;
        command.args(std::env::args_os().skip(1)).arg("--end");
        let child = command.stdin(Stdio::from(OwnedFd::from(stream))).spawn();
        child.map(Self).context("starting the second process")
    }

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
        // If it has ended, both are refused, and that is all.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
