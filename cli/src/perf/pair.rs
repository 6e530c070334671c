//! Both ends on this machine: a second process of this program, on a processor of its own.

use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::parent_id;
use std::process::{self, Child, Command, Stdio};

use anyhow::{Context, bail};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;
use serde_json::json;

use super::groups::TCP;
use super::peer::Peer;
use super::play::play;
use super::test::Test;
use super::{Args, Place, Plan, cable};
use crate::processors;

/// The devices, as --pair takes them.
const DEVICES: [&str; 4] = ["shm", "udp", "packet", "packet-v2"];
/// The interfaces of the two ends.
const INTERFACES: [&str; 2] = ["bell0", "bell1"];
/// Their addresses, as the yardstick's are.
const ADDRESSES: [IpAddr; 2] =
    [IpAddr::V4(Ipv4Addr::new(10, 79, 0, 1)), IpAddr::V4(Ipv4Addr::new(10, 79, 0, 2))];

/// Runs the first end: starts the second process, lays a cable to it where one is needed, and
/// leads.
pub fn first(args: &Args, plan: &Plan) -> anyhow::Result<()> {
    let is_tcp = args.device() == TCP && matches!(plan.test, Test::Groups(_));
    let device_is_known = DEVICES.contains(&args.device()) || is_tcp;
    if !device_is_known && !plan.test.is_of_the_kernel() {
        let (found, all) = (args.device(), DEVICES.join(", "));
        bail!("--device `{found}`: --pair takes one of {all}, and makes what that is opened on");
    }
    let wired = is_wired(args, plan);
    if wired {
        cable::leave()?;
    }
    let (stream, other) = UnixStream::pair().context("a pair of sockets")?;
    let own = processors::allowed(0)?;
    processors::allowed(1).context("--pair")?;
    let spare = spare(0);
    if plan.nic.dedicated && spare.is_none() {
        eprintln!(
            "doorbell: four processors would give each NIC one of its own; here its thread shares \
             that of its program, and the two wait for each other"
        );
    }
    let mut second = Second::start(other)?;
    processors::bind(own)?;
    let mut peer = Peer::over(stream, true)?;
    if wired {
        // It tells its process number when it has left for a namespace of its own.
        let far = peer.hear()?.as_u64().context("the second process's number")?;
        cable::lay(0, INTERFACES, far, args.mtu)?;
        plug_in(args, &mut peer, 0)?;
    }
    play(args, plan, &mut peer, &Place { device: &device(args, 0), here: ADDRESSES[0], spare })?;
    second.end()
}

/// Runs the second end, in the process that the first end has started.
pub fn second(args: &Args, plan: &Plan) -> anyhow::Result<()> {
    set_pdeathsig(Signal::SIGKILL).context("asking to end with the first process")?;
    let spare = spare(1);
    processors::bind(processors::allowed(1)?)?;
    let stream = io::stdin().as_fd().try_clone_to_owned().context("the first process's socket")?;
    let mut peer = Peer::over(UnixStream::from(stream), false)?;
    if is_wired(args, plan) {
        cable::leave()?;
        peer.tell(&json!(process::id()))?;
        plug_in(args, &mut peer, 1)?;
    }
    play(args, plan, &mut peer, &Place { device: &device(args, 1), here: ADDRESSES[1], spare })
}

/// The processor for an end's NIC, if each of the two has one beside those of their programs. It is
/// to be asked before this process is bound to one.
fn spare(end: usize) -> Option<usize> {
    processors::allowed(3).and_then(|_| processors::allowed(2 + end)).ok()
}

/// Takes this end's interface up, and waits until the other end has done so, too.
fn plug_in(args: &Args, peer: &mut Peer, end: usize) -> anyhow::Result<()> {
    peer.swap(&json!("laid"))?;
    cable::take_up(INTERFACES[end], ADDRESSES[end], args.mtu)?;
    peer.swap(&json!("up"))?;
    cable::await_carrier(INTERFACES[end])?;
    peer.swap(&json!("plugged in")).map(drop)
}

/// Returns whether the ends need a network between them.
fn is_wired(args: &Args, plan: &Plan) -> bool {
    plan.test.is_of_the_kernel() || args.device() != "shm"
}

/// The device of an end, with what it is opened on.
fn device(args: &Args, end: usize) -> String {
    match args.device() {
        "shm" => {
            // The first process's number, which both know.
            let first = if end == 0 { process::id() } else { parent_id() };
            format!("shm:perf-{first}/{end}")
        }
        "udp" => format!("udp:{}:4791", ADDRESSES[end]),
        device => format!("{device}:{}", INTERFACES[end]),
    }
}

/// The second process, which does not outlive this.
struct Second(Child);

impl Second {
    fn start(stream: UnixStream) -> anyhow::Result<Self> {
        let program = std::env::current_exe().context("looking for this program")?;
        let mut command = Command::new(program);
        command.args(std::env::args_os().skip(1)).arg("--end");
        let child = command.stdin(Stdio::from(OwnedFd::from(stream))).spawn();
        child.map(Self).context("starting the second process")
    }

    /// Waits for its end, which must be a good one.
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
