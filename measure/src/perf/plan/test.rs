//! The tests, by their names.

use std::time::Duration;

use clap::builder::PossibleValue;
use doorbell_splitc::Carrier;

use super::amount::Amount;

/// A test that `doorbell perf` knows.
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
    /// A test of the NIC.
    Verbs(Verb),
    /// A test of Active Messages.
    Am(Am),
    /// The throughput of a byte stream over queue pairs.
    BytestreamBw,
    /// A test of RPC.
    Rpc(Rpc),
    /// A test of tagged messages.
    Tags(Tags),
    /// A test of groups of two members.
    Groups(Groups),
    /// A test of messages as streams.
    Streams(Streams),
    /// A test of Split-C.
    SplitC(SplitC),
    /// The parameters of LogP.
    LogP(Layer),
    /// A breakdown of the host's time.
    Costs(Costs),
}

/// A layer that sends messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Layer {
    Verbs,
    Am,
    SplitC,
}

/// A layer whose time is broken down.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Costs {
    Am,
    SplitC,
}

/// A test of the NIC.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verb {
    SendLat,
    SendBw,
    WriteLat,
    WriteBw,
    WriteImmLat,
    WriteImmBw,
    WriteDoneLat,
    ReadLat,
    ReadBw,
    CasLat,
    FaaLat,
    MapLat,
    IdleCpu,
}

/// A test of Active Messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Am {
    Lat,
    /// A typed call, whose handler returns the answer.
    CallLat,
    MediumLat,
    Bw,
    /// A stream of messages of all sizes up to the given one.
    MixedBw,
    BulkBw,
}

/// A test of tagged messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tags {
    /// A message there and one back.
    Lat,
    /// Messages one way, to receives that are posted ahead.
    Bw,
    /// Messages one way, which are received when many have come.
    UnexpectedBw,
}

/// A test of groups of two members. Each measures several sizes or operations in one run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Groups {
    /// A message there and one back.
    PingPong,
    /// The collectives of the Intel MPI Benchmarks.
    Collectives,
    /// Two kernels of the NAS Parallel Benchmarks.
    Nas,
    /// The processor time of receiving long messages.
    Receiving,
}

/// A test of messages as streams.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Streams {
    /// A message there and one back.
    Lat,
    /// Messages of one piece, one way.
    Bw,
    /// The pieces of long messages, one way.
    PieceBw,
    /// A message there and one back, by the layer of tags that stands on streams.
    TagLat,
    /// Messages one way, by that layer.
    TagBw,
}

/// The tests of Split-C.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SplitC {
    GetLat,
    PutLat,
    GetBw,
    PutBw,
    StoreBw,
    BarrierLat,
    /// Additions to random entries of a table that is spread over the processes.
    Histogram,
    /// Reads of random entries of a table that is spread over the processes, many at a time.
    Gather,
}

/// A test of RPC.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rpc {
    /// Calls one after the other.
    Lat,
    /// Calls of which many are in flight at a time.
    Bw,
    /// The messages of one call's stream.
    Stream,
}

const TESTS: [(Test, &str, &str); 57] = [
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
    (Test::Verbs(Verb::SendLat), "send_lat", "sends: half a round trip"),
    (Test::Verbs(Verb::SendBw), "send_bw", "sends: a stream"),
    (Test::Verbs(Verb::WriteLat), "write_lat", "writes, found in memory: half a round trip"),
    (Test::Verbs(Verb::WriteBw), "write_bw", "writes: a stream"),
    (Test::Verbs(Verb::WriteImmLat), "write_imm_lat", "writes with immediate: half a round trip"),
    (Test::Verbs(Verb::WriteImmBw), "write_imm_bw", "writes with immediate: a stream"),
    (Test::Verbs(Verb::WriteDoneLat), "write_done_lat", "a write, to its completion: all of it"),
    (Test::Verbs(Verb::ReadLat), "read_lat", "a read, to its completion: all of it"),
    (Test::Verbs(Verb::ReadBw), "read_bw", "reads: a stream"),
    (Test::Verbs(Verb::CasLat), "cas_lat", "a compare-and-swap, to its completion: all of it"),
    (Test::Verbs(Verb::FaaLat), "faa_lat", "a fetch-and-add, to its completion: all of it"),
    (Test::Verbs(Verb::MapLat), "map_lat", "a word of mapped memory: half a round trip; shm only"),
    (
        Test::Verbs(Verb::IdleCpu),
        "idle_nic_cpu",
        "the share of a processor that a program takes which is connected, and waits",
    ),
    (Test::Am(Am::Lat), "am_lat", "a call and its reply, of words: half a round trip"),
    (
        Test::Am(Am::CallLat),
        "call_lat",
        "a typed call and the answer that its handler returns: half of it",
    ),
    (Test::Am(Am::MediumLat), "am_medium_lat", "a call and its reply, with payloads: half of it"),
    (Test::Am(Am::Bw), "am_bw", "requests without replies: a stream"),
    (Test::Am(Am::MixedBw), "am_mixed_bw", "the same, of all sizes from 8 bytes up to that"),
    (Test::Am(Am::BulkBw), "am_bulk_bw", "payloads placed in the peer's segment: a stream"),
    (
        Test::BytestreamBw,
        "bytestream_bw",
        "a byte stream, written and read as one of TCP is: a stream",
    ),
    (Test::Rpc(Rpc::Lat), "rpc_lat", "a call of RPC and its answer: all of it"),
    (Test::Rpc(Rpc::Bw), "rpc_bw", "calls of RPC, many in flight: a stream of their bodies"),
    (
        Test::Rpc(Rpc::Stream),
        "rpc_stream",
        "the messages of one stream of RPC: from the server, or both ways",
    ),
    (Test::Tags(Tags::Lat), "tag_lat", "a tagged message and one back: half a round trip"),
    (Test::Tags(Tags::Bw), "tag_bw", "tagged messages to receives that are posted: a stream"),
    (
        Test::Tags(Tags::UnexpectedBw),
        "tag_unexpected_bw",
        "tagged messages that come before their receives: a stream",
    ),
    (
        Test::Groups(Groups::PingPong),
        "group_pingpong",
        "a message and one back between members of a group: by sizes; also over tcp",
    ),
    (
        Test::Groups(Groups::Collectives),
        "collectives",
        "the collectives of the Intel MPI Benchmarks: all of them; also over tcp",
    ),
    (
        Test::Groups(Groups::Nas),
        "nas",
        "the kernels IS and EP of the NAS benchmarks: classes S and W; also over tcp",
    ),
    (
        Test::Groups(Groups::Receiving),
        "receive_cpu",
        "the processor's share of receiving long messages: by sizes; also over tcp",
    ),
    (
        Test::Streams(Streams::Lat),
        "stream_lat",
        "a message in pieces and one back: half a round trip",
    ),
    (Test::Streams(Streams::Bw), "stream_bw", "messages of one piece: a stream"),
    (Test::Streams(Streams::PieceBw), "stream_piece_bw", "the pieces of long messages: a stream"),
    (
        Test::Streams(Streams::TagLat),
        "stream_tag_lat",
        "a message by a layer of tags on streams, and one back: half a round trip",
    ),
    (
        Test::Streams(Streams::TagBw),
        "stream_tag_bw",
        "messages by a layer of tags on streams: a stream",
    ),
    (Test::SplitC(SplitC::GetLat), "get_lat", "a read of the other's memory: all of it"),
    (Test::SplitC(SplitC::PutLat), "put_lat", "a write to the other's memory, to its completion"),
    (Test::SplitC(SplitC::GetBw), "get_bw", "split-phase gets: a stream"),
    (Test::SplitC(SplitC::PutBw), "put_bw", "split-phase puts: a stream"),
    (
        Test::SplitC(SplitC::StoreBw),
        "store_bw",
        "stores, until the target has counted the last byte: a stream",
    ),
    (Test::SplitC(SplitC::BarrierLat), "barrier_lat", "a barrier of two processes: all of it"),
    (
        Test::SplitC(SplitC::Histogram),
        "histogram",
        "each process adds 1 to random entries of a table that both share",
    ),
    (
        Test::SplitC(SplitC::Gather),
        "gather",
        "each process reads random entries of a table that both share",
    ),
    (Test::LogP(Layer::Verbs), "logp_verbs", "the parameters of LogP: sends and receives"),
    (Test::LogP(Layer::Am), "logp_am", "the same of Active Messages: requests and replies"),
    (Test::LogP(Layer::SplitC), "logp_splitc", "the same of Split-C: gets, each by itself"),
    (
        Test::Costs(Costs::Am),
        "am_costs",
        "what a request and its reply spend time on, both ends on one thread",
    ),
    (
        Test::Costs(Costs::SplitC),
        "splitc_costs",
        "what a get of Split-C spends time on, both ends on one thread",
    ),
];

impl Test {
    /// Returns whether the test measures a device alone.
    pub fn is_of_frames(self) -> bool {
        use Test::{BystanderLat, FrameBw, FrameLat, IdleCpu, WakeLat};
        matches!(self, FrameLat | FrameBw | WakeLat | BystanderLat | IdleCpu)
    }

    /// Returns the names of all tests.
    pub fn names() -> impl Iterator<Item = PossibleValue> {
        TESTS.iter().map(|(_, name, what)| PossibleValue::new(*name).help(*what))
    }

    /// The one of a name that is among [`names`](Self::names).
    pub fn named(text: &str) -> Self {
        let found = TESTS.iter().find(|(_, name, _)| *name == text);
        found.map(|(test, ..)| *test).expect("only names of tests are accepted")
    }

    pub fn name(self) -> &'static str {
        TESTS.iter().find(|(test, ..)| *test == self).map_or("", |(_, name, _)| name)
    }

    /// Whether a rate is measured, and not how long something takes.
    pub fn is_stream(self) -> bool {
        let is_of_a_table = matches!(self, Self::SplitC(SplitC::Histogram | SplitC::Gather));
        let is_of_rpc = self == Self::Rpc(Rpc::Stream);
        is_of_a_table || is_of_rpc || self.name().ends_with("_bw")
    }

    /// Whether half of what is timed is told: the way there, of there and back.
    pub fn is_halved(self) -> bool {
        use Verb::{CasLat, FaaLat, ReadLat, WriteDoneLat};
        match self {
            Self::Verbs(WriteDoneLat | ReadLat | CasLat | FaaLat) | Self::WakeLat => false,
            Self::Rpc(_) | Self::SplitC(_) | Self::LogP(_) | Self::Costs(_) => false,
            Self::Groups(_) => false,
            _ => !self.is_stream(),
        }
    }

    /// Returns whether the test measures the kernel's sockets, and so no device.
    pub fn is_of_the_kernel(self) -> bool {
        matches!(self, Self::TcpLat | Self::TcpBw | Self::UdpLat | Self::UdpBw)
    }

    /// Whether the test goes on for a time, and not for a number of messages.
    pub fn is_for_a_time(self) -> bool {
        matches!(
            self,
            Self::IdleCpu
                | Self::Verbs(Verb::IdleCpu)
                | Self::Groups(Groups::PingPong | Groups::Collectives | Groups::Receiving)
        )
    }

    /// The device of the test, unless the command names one.
    pub fn customary_device(self) -> &'static str {
        if matches!(self, Self::Costs(_)) { "shm" } else { "packet" }
    }

    /// The carrier of Split-C, unless the command names one; `None` if Split-C chooses the carrier.
    pub fn customary_carrier(self) -> Option<Carrier> {
        (self == Self::Costs(Costs::SplitC)).then_some(Carrier::Messages)
    }

    /// How much is measured, unless the command says how much.
    pub fn customary(self) -> Amount {
        match self {
            Self::IdleCpu | Self::Verbs(Verb::IdleCpu) => Amount::For(Duration::from_secs(2)),
            Self::WakeLat => Amount::Times(10_000),
            Self::LogP(_) => Amount::Times(31),
            Self::Costs(_) => Amount::Times(61),
            // An access takes nanoseconds or microseconds, depending on what carries it.
            Self::SplitC(SplitC::GetLat | SplitC::PutLat) => Amount::For(Duration::from_secs(1)),
            Self::Groups(_) => Amount::For(Duration::from_secs(2)),
            _ if self.is_stream() => Amount::For(Duration::from_secs(1)),
            _ => Amount::Times(100_000),
        }
    }

    /// The mean number of bytes of a message, if messages have `size` bytes, or at most as many.
    pub fn mean_size(self, size: usize) -> f64 {
        let size = size as f64;
        if self == Self::Am(Am::MixedBw) { (8.0 + size) / 2.0 } else { size }
    }

    /// How many messages may be under way, unless the command says how many.
    pub fn customary_credits(self) -> usize {
        match self {
            Self::SplitC(_) | Self::LogP(_) => doorbell_splitc::Config::default().credits,
            _ => 8,
        }
    }

    /// The number of bytes of a message, unless the command says how many.
    pub fn customary_size(self) -> usize {
        match self {
            Self::Verbs(verb) if verb.is_of_a_word() => 8,
            Self::Am(Am::MediumLat) => 4096,
            Self::Rpc(_) => 64,
            Self::Am(Am::Bw) | Self::Tags(Tags::Bw | Tags::UnexpectedBw) => 8,
            Self::Streams(Streams::Bw | Streams::PieceBw | Streams::TagBw) => 2048,
            Self::Am(Am::MixedBw) => 512,
            Self::Am(Am::BulkBw) | Self::BytestreamBw => 65536,
            Self::Costs(Costs::SplitC) => 8,
            Self::SplitC(SplitC::BarrierLat) | Self::LogP(_) | Self::Groups(_) => 0,
            Self::SplitC(_) => 8,
            _ if self.is_stream() => 4096,
            _ => 16,
        }
    }
}

impl SplitC {
    /// The only size that a test has, if it has one size only.
    pub fn only_size(self) -> Option<usize> {
        match self {
            Self::BarrierLat => Some(0),
            Self::Histogram | Self::Gather => Some(8),
            _ => None,
        }
    }
}

impl Verb {
    /// Returns whether the operation is on a word, and on nothing longer or shorter.
    pub fn is_of_a_word(self) -> bool {
        matches!(self, Self::CasLat | Self::FaaLat | Self::MapLat)
    }

    /// The least bytes of a message. What is written is told from what was there before by the
    /// number of the round in it.
    pub fn least(self) -> usize {
        match self {
            Self::SendLat | Self::SendBw | Self::WriteImmLat => 0,
            Self::WriteLat => 8,
            _ => 1,
        }
    }
}
