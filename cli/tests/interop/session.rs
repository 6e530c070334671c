//! The guest, the cable to it, and how either side's programs are run.

use std::cell::Cell;
use std::net::IpAddr;
use std::path::PathBuf;
use std::process::Output;
use std::time::Duration;

use doorbell_interop::{Faults, Guest, Image, Link, Running, Way};
use doorbell_kit::judges::Scratch;
use doorbell_kit::lab::Cable;
use serde_json::Value;

use crate::judged::{self, Judged};
use crate::ours::Ours;

/// The longest time that anything in the guest may take. Its processor is emulated.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// How many times a case is repeated, at most, that the guest's kernel has failed.
const REPETITIONS: usize = 2;

/// A kind of device at this end.
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

/// The family of the addresses that are used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Family {
    V4,
    V6,
}

impl Family {
    pub const BOTH: [Self; 2] = [Self::V4, Self::V6];
}

/// The side that asks the other.
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
    /// By which numbers its device knows its addresses, of each family.
    gids: [usize; 2],
    scratch: Scratch,
    /// Every frame of either side.
    capture: PathBuf,
    harms: Cell<bool>,
    port: Cell<u16>,
    /// How many cases were repeated because the guest's kernel had stalled.
    stalls: Cell<usize>,
}

impl Session {
    pub fn new(cable: Cable, link: Link, guest: Guest) -> Self {
        let (harms, port, stalls) = (Cell::new(false), Cell::new(18_600), Cell::new(0));
        let gids = gids(&guest, &cable);
        let scratch = Scratch::new();
        let capture = scratch.path().join("all.pcapng");
        link.record(&capture).expect("a capture can be made");
        Self { cable, link, guest, gids, scratch, capture, harms, port, stalls }
    }

    /// A port that nobody used before.
    pub fn port(&self) -> u16 {
        self.port.replace(self.port.get() + 1) + 1
    }

    /// Returns the address of the guest.
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
        let (name, ip) = (device.name(), self.ours(device, family));
        let bits = if ip.is_ipv4() { 24 } else { 64 };
        match device {
            Device::Udp => format!("{name}:{ip}"),
            Device::PacketV2 => format!("{name}:{},{ip}/{bits}", self.cable.near.interface),
        }
    }

    /// The number by which the guest's device knows its address of a family.
    pub fn gid(&self, family: Family) -> usize {
        self.gids[family as usize]
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
            if struck.iter().any(|&(odds, times)| odds > 0.0 && times == 0) {
                return Err(format!("{way:?}, some fault has not struck: {faults:?}, {now:?}"));
            }
        }
        done
    }

    /// Whether frames are harmed.
    pub fn harms(&self) -> bool {
        self.harms.get()
    }

    /// Runs a case, and runs it again where it fails because the guest's kernel has stopped in the
    /// middle of a message, as the frames on the link prove. That is printed and counted. Any other
    /// failure is the outcome at once, as is any at all while frames are harmed.
    ///
    /// When `case` returns, the programs that it has started must have ended.
    pub fn despite_stalls(&self, mut case: impl FnMut() -> Outcome) -> Outcome {
        for _ in 0..REPETITIONS {
            // What an earlier case has left behind proves nothing of this one.
            self.link.forget_requests();
            let outcome = case();
            let Err(why) = &outcome else { return outcome };
            let Some(stall) = self.link.stall().filter(|_| !self.harms()) else { return outcome };
            eprintln!("to be repeated: {stall}. What was said of it: {why}");
            self.stalls.set(self.stalls.get() + 1);
        }
        case()
    }

    /// How many cases were repeated because the guest's kernel had stopped in the middle of a
    /// message.
    pub fn stalls(&self) -> usize {
        self.stalls.get()
    }

    /// Has all that went over the link judged.
    pub fn judge(&self) -> Judged {
        self.link.stop_recording().expect("the capture is written");
        let sent = self.link.counters(Way::ToGuest).roce;
        judged::judge(&self.capture, sent, &self.scratch)
    }
}

/// By which numbers the guest's device knows its addresses, of each family.
fn gids(guest: &Guest, cable: &Cable) -> [usize; 2] {
    // In the order of their numbers, of which there are a thousand.
    let listed = guest.run("cat /sys/class/infiniband/rxe0/ports/1/gids/[0-9]", PATIENCE);
    let listed = listed.expect("it is listed").stdout;
    [cable.far.ipv4.to_ipv6_mapped(), cable.far.ipv6].map(|address| {
        let found = listed.lines().position(|line| line.parse() == Ok(address));
        found.unwrap_or_else(|| panic!("the guest's device does not list {address}:\n{listed}"))
    })
}

/// In which packages the programs came that were met.
pub fn versions(image: &Image) -> String {
    let met = ["linux-image-", "ibverbs-utils_", "rdmacm-utils_"];
    let is_met = |file: &&str| met.iter().any(|name| file.starts_with(name));
    image.packages().all().filter(is_met).collect::<Vec<_>>().join(", ")
}

/// Returns what a `doorbell` at this end has printed, if it has succeeded.
pub fn found(ours: Ours) -> Outcome<Value> {
    let Output { status, stdout, stderr } = ours.end(PATIENCE);
    match status.success() {
        true => serde_json::from_slice(&stdout).map_err(|why| format!("ours: {why}")),
        false => Err(format!("ours: {status}: {}", String::from_utf8_lossy(&stderr))),
    }
}

/// Returns the output of a program in the guest, if it has succeeded.
pub fn ended(running: Running) -> Outcome<doorbell_interop::Output> {
    let output = running.wait(PATIENCE).map_err(|why| why.to_string())?;
    match output.succeeded() {
        true => Ok(output),
        false => Err(format!("theirs: {output}")),
    }
}
