//! The tests, and what is customary for each: its device, its amount, its size.

use std::time::Duration;

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
    /// A table of all layers, by other tests.
    Layers,
}

/// A layer that sends messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(test, derive(clap::ValueEnum))]
pub enum Layer {
    Verbs,
    Am,
    SplitC,
}

/// A layer whose time is broken down.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(test, derive(clap::ValueEnum))]
pub enum Costs {
    Am,
    SplitC,
    Tags,
    Rpc,
}

/// A test of the NIC.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(test, derive(clap::ValueEnum))]
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
#[cfg_attr(test, derive(clap::ValueEnum))]
pub enum Am {
    Lat,
    /// A typed call, whose handler returns the answer.
    CallLat,
    /// Typed calls of which many are in flight at a time.
    CallBw,
    MediumLat,
    Bw,
    /// A stream of messages of all sizes up to the given one.
    MixedBw,
    BulkBw,
}

/// A test of tagged messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(test, derive(clap::ValueEnum))]
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
#[cfg_attr(test, derive(clap::ValueEnum))]
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
#[cfg_attr(test, derive(clap::ValueEnum))]
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
#[cfg_attr(test, derive(clap::ValueEnum))]
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
#[cfg_attr(test, derive(clap::ValueEnum))]
pub enum Rpc {
    /// Calls one after the other.
    Lat,
    /// Calls of which many are in flight at a time.
    Bw,
    /// The messages of one call's stream.
    Stream,
}

impl Test {
    /// Returns whether the test measures a device alone.
    pub fn is_of_frames(self) -> bool {
        use Test::{BystanderLat, FrameBw, FrameLat, IdleCpu, WakeLat};
        matches!(self, FrameLat | FrameBw | WakeLat | BystanderLat | IdleCpu)
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
            Self::Groups(_) | Self::Layers => false,
            _ => !self.is_stream(),
        }
    }

    /// Returns whether the test measures the kernel's sockets, and so no device.
    pub fn is_of_the_kernel(self) -> bool {
        matches!(self, Self::TcpLat | Self::TcpBw | Self::UdpLat | Self::UdpBw)
    }

    /// Whether what is lost is made good, since a NIC carries what is measured.
    pub fn may_lose(self) -> bool {
        let is_of_nics = !self.is_of_frames() && !self.is_of_the_kernel();
        is_of_nics && !matches!(self, Self::Layers | Self::Costs(_))
    }

    /// Whether the test goes on for a time, and not for a number of messages.
    pub fn is_for_a_time(self) -> bool {
        matches!(
            self,
            Self::IdleCpu
                | Self::Layers
                | Self::Verbs(Verb::IdleCpu)
                | Self::Groups(Groups::PingPong | Groups::Collectives | Groups::Receiving)
        )
    }

    /// The device of the test, unless the command names one.
    pub fn customary_device(self) -> &'static str {
        if matches!(self, Self::Costs(_) | Self::Layers) { "shm" } else { "packet" }
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
            Self::Layers => Amount::For(Duration::from_secs(1)),
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

    /// Whether the test makes calls of which several may be in flight at a time.
    pub fn is_of_many_calls(self) -> bool {
        matches!(self, Self::Rpc(Rpc::Bw) | Self::Am(Am::CallBw))
    }

    /// How many calls are in flight at a time, unless the command says how many.
    pub fn customary_in_flight(self) -> usize {
        if self.is_of_many_calls() { 64 } else { 1 }
    }

    /// The number of bytes of a message, unless the command says how many.
    pub fn customary_size(self) -> usize {
        match self {
            Self::Verbs(verb) if verb.is_of_a_word() => 8,
            Self::Am(Am::MediumLat) => 4096,
            Self::Rpc(_) | Self::Am(Am::CallBw) => 64,
            Self::Am(Am::Bw) | Self::Tags(Tags::Bw | Tags::UnexpectedBw) => 8,
            Self::Streams(Streams::Bw | Streams::PieceBw | Streams::TagBw) => 2048,
            Self::Am(Am::MixedBw) => 512,
            Self::Am(Am::BulkBw) | Self::BytestreamBw => 65536,
            Self::Costs(Costs::SplitC | Costs::Rpc) => 8,
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
