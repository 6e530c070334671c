//! The guest, the cable to it, and how either side's programs are run.

use std::cell::Cell;
use std::io::{BufRead, BufReader, Read};
use std::net::IpAddr;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use doorbell_interop::{Faults, Guest, Image, Link, Output, Running, Way};
use doorbell_kit::judges::Scratch;
use doorbell_kit::lab::Cable;
use serde_json::Value;

use crate::judged::{self, Judged};

/// What nothing in the guest takes, whose processor is made of software.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Which device of ours.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Device {
    Udp,
    PacketV2,
}

impl Device {
    pub const ALL: [Self; 2] = [Self::Udp, Self::PacketV2];

    pub fn name(self) -> &'static str {
        match self {
            Self::Udp => "udp",
            Self::PacketV2 => "packet-v2",
        }
    }
}

/// By which addresses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Family {
    V4,
    V6,
}

impl Family {
    pub const BOTH: [Self; 2] = [Self::V4, Self::V6];
}

/// Who asks the other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Asks {
    We,
    They,
}

impl Asks {
    pub const BOTH: [Self; 2] = [Self::We, Self::They];
}

/// Whatever went wrong in a case.
pub type Outcome<T = ()> = Result<T, String>;

pub struct Session {
    pub cable: Cable,
    pub link: Link,
    pub guest: Guest,
    scratch: Scratch,
    captures: Cell<usize>,
    harms: Cell<bool>,
    port: Cell<u16>,
}

impl Session {
    pub fn new(cable: Cable, link: Link, guest: Guest) -> Self {
        let (captures, harms, port) = (Cell::new(0), Cell::new(false), Cell::new(18_600));
        Self { cable, link, guest, scratch: Scratch::new(), captures, harms, port }
    }

    /// A port that nobody used before.
    pub fn port(&self) -> u16 {
        self.port.replace(self.port.get() + 1) + 1
    }

    /// The guest's address.
    pub fn theirs(&self, family: Family) -> IpAddr {
        match family {
            Family::V4 => self.cable.far.ipv4.into(),
            Family::V6 => self.cable.far.ipv6.into(),
        }
    }

    /// The address of this side's kernel.
    pub fn kernels(&self, family: Family) -> IpAddr {
        match family {
            Family::V4 => self.cable.near.ipv4.into(),
            Family::V6 => self.cable.near.ipv6.into(),
        }
    }

    /// The address at which a device of ours is met: raw frames have one of their own.
    pub fn ours(&self, device: Device, family: Family) -> IpAddr {
        match (device, self.kernels(family)) {
            (Device::Udp, kernels) => kernels,
            (Device::PacketV2, IpAddr::V4(ip)) => {
                let [a, b, c, _] = ip.octets();
                [a, b, c, 77].into()
            }
            (Device::PacketV2, IpAddr::V6(ip)) => {
                let [a, b, c, d, e, f, g, _] = ip.segments();
                [a, b, c, d, e, f, g, 77].into()
            }
        }
    }

    /// A device as it is named.
    pub fn spec(&self, device: Device, family: Family) -> String {
        match (device, self.ours(device, family)) {
            (Device::Udp, IpAddr::V4(ip)) => format!("udp:{ip}"),
            (Device::Udp, IpAddr::V6(ip)) => format!("udp:[{ip}]"),
            (Device::PacketV2, IpAddr::V4(ip)) => {
                format!("packet-v2:{},{ip}/24", self.cable.near.interface)
            }
            (Device::PacketV2, IpAddr::V6(ip)) => {
                format!("packet-v2:{},{ip}/64", self.cable.near.interface)
            }
        }
    }

    /// The number by which the guest's device knows its address of a family.
    pub fn gid(&self, family: Family) -> Outcome<usize> {
        // In the order of their numbers, of which there are a thousand.
        let listed = "cat /sys/class/infiniband/rxe0/ports/1/gids/[0-9]";
        let listed = self.guest.run(listed, PATIENCE).map_err(|why| why.to_string())?;
        let wanted = match self.theirs(family) {
            IpAddr::V4(ip) => ip.to_ipv6_mapped(),
            IpAddr::V6(ip) => ip,
        };
        let found = listed.stdout.lines().position(|line| line.parse() == Ok(wanted));
        found.ok_or_else(|| format!("the guest's device does not list {wanted}:\n{listed}"))
    }

    /// Runs something with faults on the link, each of which must strike either way.
    pub fn under<T>(
        &self,
        faults: Faults,
        seed: u64,
        does: impl FnOnce() -> Outcome<T>,
    ) -> Outcome<T> {
        let before = Way::ALL.map(|way| self.link.counters(way));
        self.link.faults(faults, seed);
        self.harms.set(true);
        let done = does();
        self.harms.set(false);
        self.link.faults(Faults::NONE, 0);
        for (way, before) in Way::ALL.into_iter().zip(before) {
            let now = self.link.counters(way);
            let struck = [
                (faults.loss, now.lost - before.lost),
                (faults.repetition, now.repeated - before.repeated),
                (faults.delay, now.delayed - before.delayed),
                (faults.corruption, now.corrupted - before.corrupted),
            ];
            // Where nobody answers there is one way only.
            let silent = faults.loss == 1.0 && way == Way::FromGuest;
            if !silent && struck.iter().any(|&(odds, times)| odds > 0.0 && times == 0) {
                return Err(format!("{way:?}, some fault has not struck: {faults:?}, {now:?}"));
            }
        }
        done
    }

    /// Whether frames are harmed.
    pub fn harms(&self) -> bool {
        self.harms.get()
    }

    /// Runs something whose frames are kept for the judges.
    pub fn recorded<T>(&self, does: impl FnOnce() -> T) -> T {
        let number = self.captures.replace(self.captures.get() + 1);
        let path = self.scratch.path().join(format!("{number}.pcapng"));
        self.link.record(path).expect("a capture can be made");
        let done = does();
        self.link.stop_recording().expect("it is written");
        done
    }

    /// Has all that was kept judged.
    pub fn judge(&self) -> Judged {
        judged::judge(self.captures.get(), &self.scratch)
    }
}

/// In which packages the programs came that were met.
pub fn versions(image: &Image) -> String {
    let met = ["linux-image-", "ibverbs-utils_", "rdmacm-utils_"];
    let is_met = |file: &&str| met.iter().any(|name| file.starts_with(name));
    image.packages().all().filter(is_met).collect::<Vec<_>>().join(", ")
}

/// A `doorbell` of ours under way.
pub struct Ours {
    child: Child,
    lines: BufReader<std::process::ChildStderr>,
    heard: String,
}

impl Ours {
    pub fn start(arguments: &str) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_doorbell"));
        command.args(arguments.split(' ')).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the command runs");
        let lines = BufReader::new(child.stderr.take().expect("it is piped"));
        Self { child, lines, heard: String::new() }
    }

    /// The port at which it waits.
    pub fn port(&mut self) -> Outcome<u16> {
        loop {
            let at = self.heard.len();
            let any = self.lines.read_line(&mut self.heard).map_err(|why| why.to_string())?;
            if any == 0 {
                return Err(format!("it does not wait: {}", self.heard));
            }
            if let Some(port) = self.heard[at..].trim().strip_prefix("waiting at TCP port ") {
                return port.parse().map_err(|_| format!("`{port}` is no port"));
            }
        }
    }

    /// Ends it, and says what it has said.
    pub fn stop(mut self) -> String {
        let _ = self.child.kill();
        let _ = self.lines.read_to_string(&mut self.heard);
        std::mem::take(&mut self.heard)
    }

    /// What it found, if it has succeeded. Once it has met somebody it ends by itself, for its
    /// patience does.
    pub fn end(mut self) -> Outcome<Value> {
        let mut printed = String::new();
        let stdout = self.child.stdout.as_mut().expect("it is piped");
        stdout.read_to_string(&mut printed).map_err(|why| why.to_string())?;
        self.lines.read_to_string(&mut self.heard).map_err(|why| why.to_string())?;
        let status = self.child.wait().map_err(|why| why.to_string())?;
        match status.success() {
            true => serde_json::from_str(&printed).map_err(|why| format!("{why}: {printed}")),
            false => Err(format!("ours: {status}: {}", self.heard)),
        }
    }
}

impl Drop for Ours {
    fn drop(&mut self) {
        // Unless it has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What a program in the guest said, if it has succeeded.
pub fn ended(running: Running) -> Outcome<Output> {
    let output = running.wait(PATIENCE).map_err(|why| why.to_string())?;
    match output.succeeded() {
        true => Ok(output),
        false => Err(format!("theirs: {output}")),
    }
}
