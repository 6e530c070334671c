//! The tests, by their names.

use std::time::Duration;

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
    /// A test of a layer that is not there yet.
    Later(&'static str),
}

const TODAY: [(&str, Test); 6] = [
    ("frame_lat", Test::FrameLat),
    ("frame_bw", Test::FrameBw),
    ("tcp_lat", Test::TcpLat),
    ("tcp_bw", Test::TcpBw),
    ("udp_lat", Test::UdpLat),
    ("udp_bw", Test::UdpBw),
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
    pub fn names() -> impl Iterator<Item = clap::builder::PossibleValue> {
        let later = LATER.iter().flat_map(|(_, names)| names.iter());
        let today = TODAY.iter().map(|(name, _)| clap::builder::PossibleValue::new(*name));
        today.chain(later.map(|name| clap::builder::PossibleValue::new(*name).hide(true)))
    }

    /// The one of a name that is among [`names`](Self::names).
    pub fn named(text: &str) -> Self {
        let today = TODAY.iter().find(|(name, _)| *name == text).map(|(_, test)| *test);
        let mut later = LATER.iter().flat_map(|(_, names)| names.iter());
        today
            .or_else(|| later.find(|name| **name == text).map(|name| Self::Later(name)))
            .expect("only names of tests are accepted")
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Later(name) => name,
            _ => TODAY.iter().find(|(_, test)| *test == self).map_or("", |(name, _)| name),
        }
    }

    pub fn is_there(self) -> Result<(), NotThere> {
        let Self::Later(test) = self else { return Ok(()) };
        let layer = LATER.iter().find(|(_, names)| names.contains(&test));
        let today: Vec<_> = TODAY.iter().map(|(name, _)| *name).collect();
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
        if self.is_stream() { Amount::For(Duration::from_secs(1)) } else { Amount::Times(100_000) }
    }

    /// Bytes of a message if nobody says.
    pub fn customary_size(self) -> usize {
        if self.is_stream() { 4096 } else { 16 }
    }
}
