//! The arguments of the program.

use std::fmt;
use std::time::Duration;

use clap::{Parser, ValueEnum};

use crate::case::{CASES, Case};

/// Measures Doorbell's RPC beside tonic, tarpc and quinn
#[derive(Parser, Debug)]
pub struct Args {
    /// Systems to measure; all unless given
    #[arg(long, value_enum, value_delimiter = ',', value_name = "SYSTEM")]
    pub system: Vec<System>,

    /// Devices to measure on; all that a system has unless given
    #[arg(long, value_enum, value_delimiter = ',', value_name = "DEVICE")]
    pub device: Vec<Device>,

    /// Cases to measure; all unless given
    #[arg(long, value_delimiter = ',', value_name = "CASE", value_parser = Case::named)]
    pub case: Vec<Case>,

    /// Seconds that a case is measured for; 2 unless given, and 60 of an overload
    #[arg(long, value_name = "S", value_parser = seconds)]
    seconds: Option<f64>,

    /// Print a line of JSON for each system, device and case rather than a table
    #[arg(long)]
    pub json: bool,

    /// Threads of each end's runtime: one is Tokio's current-thread runtime, more are its
    /// multi-thread runtime
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = threads)]
    pub threads: usize,

    /// MTU of the veth pair
    #[arg(long, value_name = "BYTES", default_value_t = 9000,
        value_parser = clap::value_parser!(u16).range(1280..))]
    pub mtu: u16,

    /// Connect N clients to a Doorbell server over UDP that call nothing, and print what they cost
    /// the server
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=16_000))]
    pub idle: Option<u32>,

    /// Call a Doorbell server twice as often as it can answer, and print what becomes of the calls
    #[arg(long, conflicts_with = "idle")]
    pub overload: bool,

    /// Microseconds that the overloaded server has a call wait for its handler to begin
    #[arg(long, value_name = "US", default_value_t = 100, requires = "overload")]
    pub shed_after: u32,

    /// The end that this process is
    #[arg(long, value_enum, hide = true)]
    pub end: Option<End>,
}

/// The longest measurement of a case, which bounds the memory for latencies.
const MOST_SECONDS: f64 = 60.0;

fn seconds(text: &str) -> Result<f64, String> {
    let seconds: f64 = text.parse().map_err(|_| "this is no number".to_owned())?;
    if (0.01..=MOST_SECONDS).contains(&seconds) {
        Ok(seconds)
    } else {
        Err(format!("it is to be from 0.01 to {MOST_SECONDS}"))
    }
}

fn threads(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(threads @ 1..=1024) => Ok(threads),
        _ => Err("it is to be from 1 to 1024".to_owned()),
    }
}

impl Args {
    pub fn time(&self) -> Duration {
        let usual = if self.overload { MOST_SECONDS } else { 2.0 };
        Duration::from_secs_f64(self.seconds.unwrap_or(usual))
    }

    /// How long a server has calls wait that is overloaded, if one is to be.
    pub fn shed_after(&self) -> Option<Duration> {
        self.overload.then(|| Duration::from_micros(self.shed_after.into()))
    }

    /// The cases that were asked for.
    pub fn cases(&self) -> Vec<Case> {
        if self.case.is_empty() { CASES.to_vec() } else { self.case.clone() }
    }

    /// The Doorbell systems that were asked for, each on the devices that were asked for: UDP unless
    /// given.
    pub fn doorbells(&self) -> Vec<(System, Device)> {
        let is_doorbell = |system| matches!(system, System::Doorbell | System::DoorbellTask);
        let mut places = self.places();
        places.retain(|&(system, device)| {
            is_doorbell(system) && (!self.device.is_empty() || device == Device::Udp)
        });
        places
    }

    /// The systems that were asked for, each with a device of its own that was asked for.
    pub fn places(&self) -> Vec<(System, Device)> {
        let all = System::value_variants().iter();
        let systems = all.filter(|&system| self.system.is_empty() || self.system.contains(system));
        let asked = |device: &Device| self.device.is_empty() || self.device.contains(device);
        systems
            .flat_map(|&system| system.devices().iter().map(move |&device| (system, device)))
            .filter(|(_, device)| asked(device))
            .collect()
    }
}

/// An end of a connection, as a process.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Debug)]
pub enum End {
    Client,
    Server,
}

impl End {
    pub fn name(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Server => "server",
        }
    }
}

/// An RPC system, with a way of running handlers.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Debug)]
pub enum System {
    /// Doorbell, with a handler that runs where its request is received.
    Doorbell,
    /// Doorbell, with a task for each request.
    DoorbellTask,
    /// tonic, which starts a task for each request.
    Tonic,
    /// tarpc, with a task for each request, as its guide has it.
    Tarpc,
    /// tarpc, with a handler that runs in the task that receives its request.
    TarpcInline,
    /// QUIC streams that stay open, without an RPC library.
    Quinn,
}

impl System {
    fn devices(self) -> &'static [Device] {
        use Device::{Packet, PacketV2, Shm, Tcp, TcpLoopback, Udp, UdpLoopback};
        match self {
            Self::Doorbell | Self::DoorbellTask => &[Udp, Packet, PacketV2, Shm, UdpLoopback],
            Self::Tonic | Self::Tarpc | Self::TarpcInline => &[Tcp, TcpLoopback],
            Self::Quinn => &[Udp, UdpLoopback],
        }
    }
}

/// What packets or segments go over.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Debug)]
pub enum Device {
    /// UDP over the veth pair.
    Udp,
    /// Raw Ethernet over the veth pair, RoCE v1.
    Packet,
    /// Raw Ethernet over the veth pair, RoCE v2.
    PacketV2,
    /// Shared memory.
    Shm,
    /// TCP over the veth pair.
    Tcp,
    /// UDP over the loopback interface.
    UdpLoopback,
    /// TCP over the loopback interface.
    TcpLoopback,
}

impl Device {
    /// Whether the ends need a veth pair between them.
    pub fn is_wired(self) -> bool {
        matches!(self, Self::Udp | Self::Packet | Self::PacketV2 | Self::Tcp)
    }

    pub fn is_loopback(self) -> bool {
        matches!(self, Self::UdpLoopback | Self::TcpLoopback)
    }
}

/// Writes the name that the command line has for a value.
fn write_name(value: &impl ValueEnum, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let value = value.to_possible_value().expect("no value is hidden");
    f.pad(value.get_name())
}

impl fmt::Display for System {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_name(self, f)
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_name(self, f)
    }
}
