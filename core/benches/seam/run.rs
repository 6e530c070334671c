//! Starting the two processes of each measurement, and what each of them does.

use std::io::{self, BufRead, BufReader, Write};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use doorbell_core::encap::{Outer, Path, PathId};
use doorbell_core::wire::{
    EtherType, Ethernet as EthernetHeader, FlowLabel, Gid, Grh, InetChecksum, IpId, IpProtocol,
    Ipv4, Ipv6, Mac, Udp, UdpPort,
};

use crate::ethernet::Ethernet;
use crate::meet::{self, Meeting};
use crate::shm::{self, SharedMemory};
use crate::sys::{self, SharedWords};
use crate::traffic::{self, DEEP, IMPATIENT, Notice, PATIENT, SHALLOW};
use crate::{floor, report};

const MTU: &str = "9000";
const INTERFACES: [&str; 2] = ["bell0", "bell1"];
/// The most packets that the kernel takes in one segmentation-offload frame.
const SEGMENTS: u32 = 128;

/// What to measure, and how often.
struct Plan {
    ethernet: bool,
    shm: bool,
    rounds: u32,
}

/// What a child is told: its side, and the descriptors that it inherits.
struct Role {
    side: usize,
    meeting: RawFd,
    segment: RawFd,
    events: [RawFd; 2],
}

pub fn main(args: impl Iterator<Item = String>) -> io::Result<()> {
    let args: Vec<String> = args.filter(|arg| arg != "--bench").collect();
    let plan = Plan::parse(&args)?;
    if let Some(role) = Role::parse(&args)? {
        return role.play(&plan);
    }
    for transport in ["ethernet", "shm"] {
        let wanted = if transport == "shm" { plan.shm } else { plan.ethernet };
        if wanted {
            stage(transport, plan.rounds)?;
        }
    }
    Ok(())
}

fn bad_usage(what: &str) -> io::Error {
    io::Error::other(format!("{what}; usage: seam [ethernet|shm] [--rounds N]"))
}

impl Plan {
    fn parse(args: &[String]) -> io::Result<Self> {
        let named = |name: &str| args.iter().any(|arg| arg == name);
        let rounds = match args.iter().position(|arg| arg == "--rounds") {
            None => 3,
            Some(at) => args
                .get(at + 1)
                .and_then(|count| count.parse().ok())
                .ok_or_else(|| bad_usage("--rounds takes a number"))?,
        };
        let all = !named("ethernet") && !named("shm");
        Ok(Self { ethernet: all || named("ethernet"), shm: all || named("shm"), rounds })
    }
}

/// Starts both sides, puts a cable between them where they need one, and waits for their end.
fn stage(transport: &str, rounds: u32) -> io::Result<()> {
    let meeting = SharedWords::create(meet::WORDS)?;
    let segment = SharedWords::create(shm::WORDS)?;
    let events = [sys::event_fd()?, sys::event_fd()?];
    let fds = [&meeting, &segment, &events[0], &events[1]].map(|fd| fd.as_raw_fd().to_string());
    if transport == "ethernet" && !sys::is_root() {
        sys::enter_new_user()?;
        // Interfaces are made from here, and the network that we came from is not ours.
        sys::enter_new_network()?;
    }
    let start = |side: usize| -> io::Result<Child> {
        Command::new(std::env::current_exe()?)
            .args([transport, "--rounds", &rounds.to_string(), "--side", &side.to_string()])
            .args(&fds)
            .stdin(Stdio::piped())
            .stdout(if side == 0 { Stdio::inherit() } else { Stdio::piped() })
            .stderr(Stdio::piped())
            .spawn()
    };
    let mut children = [start(0)?, start(1)?];
    for child in &mut children {
        // A side is ready when it has left for a network of its own.
        let mut line = String::new();
        let stderr = child.stderr.take().ok_or(io::ErrorKind::BrokenPipe)?;
        let mut stderr = BufReader::new(stderr);
        stderr.read_line(&mut line)?;
        if line.trim() != "ready" {
            return Err(io::Error::other(line));
        }
        std::thread::spawn(move || io::copy(&mut stderr, &mut io::stderr()));
    }
    if transport == "ethernet" {
        lay_cable(&children)?;
    }
    for child in &mut children {
        child.stdin.take().ok_or(io::ErrorKind::BrokenPipe)?.write_all(b"go\n")?;
    }
    let ends = [children[0].wait()?, children[1].wait()?];
    if ends.iter().all(|end| end.success()) {
        return Ok(());
    }
    Err(io::Error::other(format!("the {transport} measurement failed: {ends:?}")))
}

fn ip(args: &[&str]) -> io::Result<()> {
    let status = Command::new("ip").args(args).status().map_err(|error| {
        io::Error::new(error.kind(), format!("ip (of the package iproute2): {error}"))
    })?;
    if status.success() {
        return Ok(());
    }
    Err(io::Error::other(format!("ip {}: {status}", args.join(" "))))
}

fn lay_cable(children: &[Child; 2]) -> io::Result<()> {
    let [a, b] = [children[0].id().to_string(), children[1].id().to_string()];
    let [one, other] = INTERFACES;
    ip(&[
        "link", "add", one, "netns", &a, "mtu", MTU, "type", "veth", "peer", "name", other,
        "netns", &b, "mtu", MTU,
    ])
}

impl Role {
    fn parse(args: &[String]) -> io::Result<Option<Self>> {
        let Some(at) = args.iter().position(|arg| arg == "--side") else { return Ok(None) };
        let number = |offset: usize| -> io::Result<RawFd> {
            let word = args.get(at + offset);
            word.and_then(|word| word.parse().ok()).ok_or_else(|| bad_usage("--side is for itself"))
        };
        Ok(Some(Self {
            side: number(1)? as usize,
            meeting: number(2)?,
            segment: number(3)?,
            events: [number(4)?, number(5)?],
        }))
    }

    fn play(&self, plan: &Plan) -> io::Result<()> {
        sys::pin(self.side)?;
        if plan.ethernet {
            sys::enter_new_network()?;
        }
        eprintln!("ready");
        io::stdin().read_line(&mut String::new())?;
        let words = Arc::new(SharedWords::map(self.meeting, meet::WORDS)?);
        let meeting = Arc::new(Meeting::new(words, self.side));
        if plan.ethernet {
            ip(&["link", "set", "dev", INTERFACES[self.side], "up"])?;
            meeting.meet();
        }
        for round in 1..=plan.rounds {
            if plan.ethernet {
                self.ethernet(&meeting, round)?;
            } else {
                self.shm(&meeting, round)?;
            }
        }
        Ok(())
    }

    /// Says something, if this is the side that speaks.
    fn tell(&self, what: impl FnOnce()) {
        if self.side == 0 {
            what();
        }
    }

    fn ethernet(&self, meeting: &Arc<Meeting>, round: u32) -> io::Result<()> {
        const PINGS: u64 = 100_000;
        const NAPS: u64 = 10_000;
        const WRITES: u64 = 20_000_000;
        let interface = INTERFACES[self.side];
        self.tell(|| println!("raw Ethernet, veth, MTU {MTU}, round {round}"));

        let floor = || floor::frame(meeting, interface, PINGS);
        let ping = |notice, patience, rounds| {
            let device = Ethernet::singles(interface, EtherType::ROCE)?;
            let meeting = Arc::clone(meeting);
            let program = |side| traffic::ping_pong(side, meeting, notice, rounds);
            traffic::with_nic(device, self.path_v1(), (SHALLOW, patience), program)
        };
        // The machine may change its mind about what a cache line costs at any moment: each is
        // compared with what stood before and behind it.
        let before = floor()?;
        let memory = ping(Notice::Memory, PATIENT, PINGS)?;
        let between = floor()?;
        let immediate = ping(Notice::Immediate, PATIENT, PINGS)?;
        let after = floor()?;
        let asleep = ping(Notice::Immediate, IMPATIENT, NAPS)?;
        self.tell(|| {
            let before = report::latency("the bare frame, 16 bytes, one way", before);
            let memory = report::latency("RDMA write, 16 bytes, seen in memory", memory);
            let between = report::latency("the bare frame again", between);
            report::times_floor("÷ the bare frame", memory, [before, between]);
            let immediate = report::latency("RDMA write with immediate, completion", immediate);
            let after = report::latency("the bare frame again", after);
            report::times_floor("÷ the bare frame", immediate, [between, after]);
            report::latency("the same, asleep between messages", asleep);
        });

        let floor = floor::runs(meeting, interface, Duration::from_secs(1))?;
        let stream = |path, protocol| {
            let device = Ethernet::runs(interface, protocol, SEGMENTS)?;
            let meeting = Arc::clone(meeting);
            traffic::with_nic(device, path, (DEEP, PATIENT), |side| {
                traffic::stream(side, meeting, WRITES)
            })
        };
        let v4 = stream(self.path_v4(), EtherType::IPV4)?;
        let v6 = stream(self.path_v6(), EtherType::IPV6)?;
        self.tell(|| {
            let floor = report::rate("bare segmentation offload, 64 bytes, 64 a frame", floor);
            for (what, rate) in [("IPv4", v4), ("IPv6", v6)] {
                report::rate(&format!("RDMA writes, 8 bytes, RoCE v2 over {what}"), rate);
                report::ratio("÷ the bare rate", rate / floor);
            }
        });
        Ok(())
    }

    fn shm(&self, meeting: &Arc<Meeting>, round: u32) -> io::Result<()> {
        const PINGS: u64 = 1_000_000;
        const NAPS: u64 = 10_000;
        const WRITES: u64 = 50_000_000;
        self.tell(|| println!("shared memory, round {round}"));

        let floor = || floor::line(meeting, PINGS);
        let ping = |notice, patience, rounds| {
            let device = self.shared_memory(meeting)?;
            let meeting = Arc::clone(meeting);
            let program = |side| traffic::ping_pong(side, meeting, notice, rounds);
            traffic::with_nic(device, self.path_v1(), (SHALLOW, patience), program)
        };
        let before = floor();
        let memory = ping(Notice::Memory, PATIENT, PINGS)?;
        let between = floor();
        let immediate = ping(Notice::Immediate, PATIENT, PINGS)?;
        let after = floor();
        let asleep = ping(Notice::Immediate, IMPATIENT, NAPS)?;
        let device = self.shared_memory(meeting)?;
        let (path, also) = (self.path_v1(), Arc::clone(meeting));
        let program = |side| traffic::stream(side, also, WRITES);
        let rate = traffic::with_nic(device, path, (DEEP, PATIENT), program)?;
        self.tell(|| {
            let before = report::latency("a cache line, one way", before);
            let memory = report::latency("RDMA write, 16 bytes, seen in memory", memory);
            let between = report::latency("a cache line again", between);
            report::excess("above the cache line", memory, [before, between]);
            let immediate = report::latency("RDMA write with immediate, completion", immediate);
            let after = report::latency("a cache line again", after);
            report::excess("above the cache line", immediate, [between, after]);
            report::latency("the same, asleep between messages", asleep);
            report::rate("RDMA writes, 8 bytes", rate);
        });
        Ok(())
    }

    /// One end of the segment, emptied of what an earlier measurement left there.
    fn shared_memory(&self, meeting: &Meeting) -> io::Result<SharedMemory> {
        let words = Arc::new(SharedWords::map(self.segment, shm::WORDS)?);
        meeting.meet();
        if self.side == 0 {
            SharedMemory::clear(&words);
        }
        meeting.meet();
        let [ours, theirs] = [self.events[self.side], self.events[1 - self.side]];
        Ok(SharedMemory::new(words, self.side, duplicate(ours)?, duplicate(theirs)?))
    }

    fn ethernet_header(&self, ethertype: EtherType) -> EthernetHeader {
        // Locally administered addresses of our own: the host's stack does not see such frames.
        let mac = |side: usize| Mac([0x02, 0xDB, 0, 0, 0, side as u8]);
        EthernetHeader { destination: mac(1 - self.side), source: mac(self.side), ethertype }
    }

    fn path_v1(&self) -> Path {
        let header = self.ethernet_header(EtherType::ROCE);
        let ip = self.ipv6(IpProtocol::IBA, Gid::from_mac);
        Path::new(PathId(0), Outer::V1(header, Grh(ip)))
    }

    fn path_v4(&self) -> Path {
        let address = |side: usize| Ipv4Addr::new(10, 79, 1, 1 + side as u8);
        let ip = Ipv4 {
            tos: 0,
            total_length: 0,
            id: IpId(0),
            dont_fragment: true,
            ttl: 64,
            protocol: IpProtocol::UDP,
            source: address(self.side),
            destination: address(1 - self.side),
        };
        Path::new(PathId(0), Outer::V2Ipv4(self.ethernet_header(EtherType::IPV4), ip, udp()))
    }

    fn path_v6(&self) -> Path {
        let address =
            |mac: Mac| Gid::from(Ipv6Addr::new(0xFD00, 0, 0, 0, 0, 0, 0, mac.0[5].into()));
        let ip = self.ipv6(IpProtocol::UDP, address);
        Path::new(PathId(0), Outer::V2Ipv6(self.ethernet_header(EtherType::IPV6), ip, udp()))
    }

    fn ipv6(&self, next_header: IpProtocol, gid: impl Fn(Mac) -> Gid) -> Ipv6 {
        let ethernet = self.ethernet_header(EtherType::IPV6);
        Ipv6 {
            traffic_class: 0,
            flow_label: FlowLabel::new(0),
            payload_length: 0,
            next_header,
            hop_limit: 64,
            source: gid(ethernet.source),
            destination: gid(ethernet.destination),
        }
    }
}

fn udp() -> Udp {
    let (source, destination) = (UdpPort(0xC000), UdpPort::ROCE_V2);
    Udp { source, destination, length: 0, checksum: InetChecksum(0) }
}

fn duplicate(fd: RawFd) -> io::Result<OwnedFd> {
    sys::borrow(fd).try_clone_to_owned()
}
