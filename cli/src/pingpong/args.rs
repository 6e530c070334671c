//! The arguments of `doorbell pingpong`.

use std::time::Duration;

use clap::{ValueEnum, value_parser};
use doorbell_measure::usage;
use doorbell_verbs::PathMtu;

/// Plays ping-pong with a peer: another of these, or `ibv_rc_pingpong` and its kin on any adapter.
///
/// One side is told where the other waits. Addresses are exchanged by TCP, messages go by RoCE. The
/// packets' size is not exchanged, and must be told both sides alike, as must how many messages
/// there are, and how long they are.
#[derive(clap::Args, Clone)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The peer that waits; without, this one does
    pub host: Option<String>,

    /// The device: udp:HOST, an address or a name of this machine's, or udp:0.0.0.0 for the one by
    /// which others come; packet-v2:INTERFACE,IP/PREFIX; or packet:INTERFACE
    #[arg(short, long, value_name = "DEV", value_parser = usage::device)]
    pub device: String,

    /// What kind of queue pair: the peer's program must be of the same
    #[arg(short, long, value_enum, default_value_t = Transport::Rc)]
    pub transport: Transport,

    /// The TCP port by which addresses are exchanged
    #[arg(short, long, value_name = "PORT", default_value_t = 18515)]
    pub port: u16,

    /// Bytes of a message [default: 4096, of datagrams 1024]
    #[arg(short, long, value_name = "BYTES", value_parser = value_parser!(u32).range(..=LONGEST))]
    pub size: Option<u32>,

    /// The most bytes of a message in one packet: 256, 512, 1024, 2048 or 4096; of datagrams it is
    /// the device's
    #[arg(short, long, value_name = "BYTES", default_value = "1024", value_parser = packets)]
    pub mtu: PathMtu,

    /// How many receives are posted, of the size of a message each
    #[arg(short, long, value_name = "N", default_value_t = 16, value_parser = value_parser!(u16).range(1..))]
    pub rx_depth: u16,

    /// How many messages each side sends
    #[arg(short = 'n', long, value_name = "N", default_value_t = 1000, value_parser = value_parser!(u64).range(1..))]
    pub iters: u64,

    /// Sleep until something comes, and do not spin
    #[arg(short, long)]
    pub events: bool,

    /// Check every byte that comes: the peer must send back what it got, as the pingpongs of
    /// rdma-core do without their own -c, or be another of these
    #[arg(short, long)]
    pub check: bool,

    /// How long nothing may come before the rest is given up, in seconds
    #[arg(long, value_name = "S", default_value_t = 10, value_parser = value_parser!(u64).range(1..=3600))]
    pub patience: u64,

    /// Print a line of JSON instead of words
    #[arg(long)]
    pub json: bool,
}

/// The longest message, in bytes.
const LONGEST: i64 = 1 << 30;

const EXAMPLES: &str = "\
Examples:
  doorbell pingpong -d udp:192.0.2.7            waits; on another machine
  ibv_rc_pingpong -d rxe0 -g 1 192.0.2.7        a kernel driver, or an adapter
  doorbell pingpong -d udp:192.0.2.8 192.0.2.7  or another of these

Raw frames, with an address of its own:
  doorbell pingpong -d packet-v2:eth0,192.0.2.9/24

With ibv_ud_pingpong -s 512:
  doorbell pingpong -t ud -s 512 -d udp:192.0.2.8 192.0.2.7";

/// The kind of a queue pair, by what it promises.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Transport {
    /// Every message arrives
    Rc,
    /// A message arrives whole, or is lost
    Uc,
    /// Each message is a packet
    Ud,
}

fn packets(text: &str) -> Result<PathMtu, String> {
    let bytes: usize = text.parse().map_err(|_| format!("`{text}` is no number"))?;
    let all =
        [PathMtu::Mtu256, PathMtu::Mtu512, PathMtu::Mtu1024, PathMtu::Mtu2048, PathMtu::Mtu4096];
    let found = all.into_iter().find(|mtu| mtu.bytes() == bytes);
    found.ok_or_else(|| format!("{bytes} is none of 256, 512, 1024, 2048 and 4096"))
}

impl Args {
    pub fn size(&self) -> usize {
        let customary = if self.transport == Transport::Ud { 1024 } else { 4096 };
        self.size.unwrap_or(customary) as usize
    }

    pub fn patience(&self) -> Duration {
        Duration::from_secs(self.patience)
    }
}
