//! The tests, by their names.

use std::time::Duration;

use clap::builder::PossibleValue;
use thiserror::Error;

use super::Amount;

/// What can be measured today.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Test {
    FrameLat,
    FrameBw,
    TcpLat,
    TcpBw,
    UdpLat,
    UdpBw,
    WakeLat,
    BystanderLat,
    IdleCpu,
    /// A test of a layer that is not there yet.
    Later(&'static str),
}

const TODAY: [(Test, &str, &str); 9] = [
    (Test::FrameLat, "frame_lat", "the device alone, no protocol: half a round trip"),
    (Test::FrameBw, "frame_bw", "the device alone: a stream"),
    (Test::TcpLat, "tcp_lat", "the kernel's TCP, polled: half a round trip"),
    (Test::TcpBw, "tcp_bw", "the kernel's TCP, polled: a stream"),
    (Test::UdpLat, "udp_lat", "the kernel's UDP, polled: half a round trip"),
    (Test::UdpBw, "udp_bw", "the kernel's UDP, polled: a stream"),
    (Test::WakeLat, "wake_lat", "from sending to the answer of an end that slept: all of it"),
    (
        Test::BystanderLat,
        "bystander_lat",
        "frame_lat, while a thread sleeps that no frame may wake",
    ),
    (Test::IdleCpu, "idle_cpu", "the share of a processor that an idle device takes"),
];

/// Tests that have their names already, and the layers that they are of.
const LATER: [(&str, &[&str]); 4] = [
    (
        "verbs",
        &[
            "send_lat",
            "send_bw",
            "write_lat",
            "write_bw",
            "write_imm_lat",
            "write_imm_bw",
            "write_done_lat",
            "read_lat",
            "read_bw",
            "cas_lat",
            "faa_lat",
        ],
    ),
    ("Active Messages", &["am_lat", "am_medium_lat", "am_bw", "am_bulk_bw"]),
    ("Split-C", &["get_lat", "put_lat", "get_bw", "put_bw", "store_bw"]),
    ("RPC", &["rpc_lat", "rpc_bw"]),
];

/// A test of a layer that is not there yet.
#[derive(Clone, Debug, Error)]
#[error("{test} measures {layer}, which this version does not have yet; it has {today}")]
pub struct NotThere {
    test: &'static str,
    layer: &'static str,
    today: String,
}

impl Test {
    /// All names.
    pub fn names() -> impl Iterator<Item = PossibleValue> {
        let today = TODAY.iter().map(|(_, name, what)| PossibleValue::new(*name).help(*what));
        let later = LATER.iter().flat_map(|(_, names)| names.iter());
        today.chain(later.map(|name| PossibleValue::new(*name).hide(true)))
    }

    /// The one of a name that is among [`names`](Self::names).
    pub fn named(text: &str) -> Self {
        let today = TODAY.iter().find(|(_, name, _)| *name == text).map(|(test, ..)| *test);
        let mut later = LATER.iter().flat_map(|(_, names)| names.iter());
        today
            .or_else(|| later.find(|name| **name == text).map(|name| Self::Later(name)))
            .expect("only names of tests are accepted")
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Later(name) => name,
            _ => TODAY.iter().find(|(test, ..)| *test == self).map_or("", |(_, name, _)| name),
        }
    }

    pub fn is_there(self) -> Result<(), NotThere> {
        let Self::Later(test) = self else { return Ok(()) };
        let layer = LATER.iter().find(|(_, names)| names.contains(&test));
        let today: Vec<_> = TODAY.iter().map(|(_, name, _)| *name).collect();
        Err(NotThere { test, layer: layer.map_or("", |(layer, _)| layer), today: today.join(", ") })
    }

    /// Whether it is a stream, and not a ping-pong.
    pub fn is_stream(self) -> bool {
        self.name().ends_with("_bw")
    }

    /// Whether it measures the kernel's sockets, and so no device.
    pub fn is_of_the_kernel(self) -> bool {
        matches!(self, Self::TcpLat | Self::TcpBw | Self::UdpLat | Self::UdpBw)
    }

    /// How much is measured if nobody says.
    pub fn customary(self) -> Amount {
        match self {
            Self::IdleCpu => Amount::For(Duration::from_secs(2)),
            Self::WakeLat => Amount::Times(10_000),
            _ if self.is_stream() => Amount::For(Duration::from_secs(1)),
            _ => Amount::Times(100_000),
        }
    }

    /// Bytes of a message if nobody says.
    pub fn customary_size(self) -> usize {
        if self.is_stream() { 4096 } else { 16 }
    }
}
