//! The list of all tests: by groups, each test with its name and a line on what it measures.

use std::fmt::Write;

use clap::builder::PossibleValue;

use super::test::{Am, Costs, Groups, Layer, Rpc, SplitC, Streams, Tags, Test, Verb};

/// A group of tests: the heading, and its tests.
struct Group {
    heading: &'static str,
    tests: &'static [Entry],
}

/// A test, its name, and what it measures.
type Entry = (Test, &'static str, &'static str);

const GROUPS: [Group; 10] = [
    Group { heading: "Devices: frames alone, without any protocol", tests: &DEVICES },
    Group { heading: "Verbs", tests: &VERBS },
    Group { heading: "Active Messages", tests: &ACTIVE_MESSAGES },
    Group { heading: "Split-C", tests: &SPLIT_C },
    Group {
        heading: "Messages (*: also over the kernel's TCP, by --device tcp)",
        tests: &MESSAGES,
    },
    Group { heading: "Byte streams", tests: &BYTE_STREAMS },
    Group { heading: "RPC", tests: &RPC },
    Group { heading: "Kernel sockets, polled, to compare with", tests: &KERNEL_SOCKETS },
    Group { heading: "Layers: tests of all of them in turn, on this machine", tests: &LAYERS },
    Group { heading: "Costs, of a command built with the feature `costs`", tests: &COSTS },
];

const DEVICES: [Entry; 5] = [
    (Test::FrameLat, "frame_lat", "half a round trip of a frame"),
    (Test::FrameBw, "frame_bw", "a stream of frames"),
    (Test::WakeLat, "wake_lat", "a round trip to an end that sleeps and is woken"),
    (Test::BystanderLat, "bystander_lat", "frame_lat beside a thread that sleeps on the device"),
    (Test::IdleCpu, "idle_cpu", "the share of a processor that an idle device takes"),
];

const VERBS: [Entry; 14] = [
    (Test::Verbs(Verb::SendLat), "send_lat", "half a round trip of sends"),
    (Test::Verbs(Verb::SendBw), "send_bw", "a stream of sends"),
    (Test::Verbs(Verb::WriteLat), "write_lat", "half a round trip of RDMA writes, seen in memory"),
    (Test::Verbs(Verb::WriteBw), "write_bw", "a stream of RDMA writes"),
    (
        Test::Verbs(Verb::WriteImmLat),
        "write_imm_lat",
        "half a round trip of RDMA writes with immediate",
    ),
    (Test::Verbs(Verb::WriteImmBw), "write_imm_bw", "a stream of RDMA writes with immediate"),
    (Test::Verbs(Verb::WriteDoneLat), "write_done_lat", "one RDMA write, until it is complete"),
    (Test::Verbs(Verb::ReadLat), "read_lat", "one RDMA read, until it is complete"),
    (Test::Verbs(Verb::ReadBw), "read_bw", "a stream of RDMA reads"),
    (Test::Verbs(Verb::CasLat), "cas_lat", "one compare-and-swap, until it is complete"),
    (Test::Verbs(Verb::FaaLat), "faa_lat", "one fetch-and-add, until it is complete"),
    (
        Test::Verbs(Verb::MapLat),
        "map_lat",
        "half a round trip through mapped memory, over shm alone",
    ),
    (
        Test::Verbs(Verb::IdleCpu),
        "idle_nic_cpu",
        "the share of a processor that a waiting program takes",
    ),
    (Test::LogP(Layer::Verbs), "logp_verbs", "LogP's parameters of sends and receives"),
];

const ACTIVE_MESSAGES: [Entry; 8] = [
    (Test::Am(Am::Lat), "am_lat", "half a round trip of a request and its reply"),
    (Test::Am(Am::CallLat), "call_lat", "half a round trip of a typed call and its answer"),
    (Test::Am(Am::CallBw), "call_bw", "typed calls, many in flight at a time"),
    (
        Test::Am(Am::MediumLat),
        "am_medium_lat",
        "half a round trip of request and reply with payload",
    ),
    (Test::Am(Am::Bw), "am_bw", "a stream of requests without replies"),
    (Test::Am(Am::MixedBw), "am_mixed_bw", "a stream of requests of 8 bytes up to --size"),
    (Test::Am(Am::BulkBw), "am_bulk_bw", "a stream of payloads placed in the peer's segment"),
    (Test::LogP(Layer::Am), "logp_am", "LogP's parameters of requests and replies"),
];

const SPLIT_C: [Entry; 9] = [
    (Test::SplitC(SplitC::GetLat), "get_lat", "one read of the other process's memory"),
    (Test::SplitC(SplitC::PutLat), "put_lat", "one write to the other's memory, until it is there"),
    (Test::SplitC(SplitC::GetBw), "get_bw", "a stream of split-phase gets"),
    (Test::SplitC(SplitC::PutBw), "put_bw", "a stream of split-phase puts"),
    (
        Test::SplitC(SplitC::StoreBw),
        "store_bw",
        "a stream of stores, until the target has counted all",
    ),
    (Test::SplitC(SplitC::BarrierLat), "barrier_lat", "a barrier of two processes"),
    (Test::SplitC(SplitC::Histogram), "histogram", "additions to random entries of a shared table"),
    (Test::SplitC(SplitC::Gather), "gather", "reads of random entries of a shared table"),
    (Test::LogP(Layer::SplitC), "logp_splitc", "LogP's parameters of gets, each sent by itself"),
];

const MESSAGES: [Entry; 12] = [
    (Test::Tags(Tags::Lat), "tag_lat", "half a round trip of tagged messages"),
    (Test::Tags(Tags::Bw), "tag_bw", "a stream of tagged messages, receives posted before"),
    (
        Test::Tags(Tags::UnexpectedBw),
        "tag_unexpected_bw",
        "a stream of tagged messages, receives posted after",
    ),
    (
        Test::Groups(Groups::PingPong),
        "group_pingpong",
        "half a round trip in a group of two, by sizes *",
    ),
    (
        Test::Groups(Groups::Collectives),
        "collectives",
        "the collectives of the Intel MPI Benchmarks *",
    ),
    (Test::Groups(Groups::Nas), "nas", "kernels IS and EP of the NAS benchmarks *"),
    (
        Test::Groups(Groups::Receiving),
        "receive_cpu",
        "a processor's share of receiving long messages *",
    ),
    (Test::Streams(Streams::Lat), "stream_lat", "half a round trip of messages sent in pieces"),
    (Test::Streams(Streams::Bw), "stream_bw", "a stream of messages of one piece"),
    (Test::Streams(Streams::PieceBw), "stream_piece_bw", "a stream of the pieces of long messages"),
    (
        Test::Streams(Streams::TagLat),
        "stream_tag_lat",
        "half a round trip by a layer of tags on streams",
    ),
    (Test::Streams(Streams::TagBw), "stream_tag_bw", "a stream by a layer of tags on streams"),
];

const BYTE_STREAMS: [Entry; 1] =
    [(Test::BytestreamBw, "bytestream_bw", "a byte stream, written and read as TCP's are")];

const RPC: [Entry; 3] = [
    (Test::Rpc(Rpc::Lat), "rpc_lat", "one call and its answer"),
    (Test::Rpc(Rpc::Bw), "rpc_bw", "calls, many in flight at a time"),
    (Test::Rpc(Rpc::Stream), "rpc_stream", "the messages of one call's stream"),
];

const KERNEL_SOCKETS: [Entry; 4] = [
    (Test::TcpLat, "tcp_lat", "half a round trip over TCP"),
    (Test::TcpBw, "tcp_bw", "a stream over TCP"),
    (Test::UdpLat, "udp_lat", "half a round trip over UDP"),
    (Test::UdpBw, "udp_bw", "a stream over UDP"),
];

const LAYERS: [Entry; 1] =
    [(Test::Layers, "layers", "latency and rate of each layer, and what it adds")];

const COSTS: [Entry; 4] = [
    (Test::Costs(Costs::Am), "am_costs", "what a request and its reply spend time on"),
    (Test::Costs(Costs::SplitC), "splitc_costs", "what a get of Split-C spends time on"),
    (Test::Costs(Costs::Tags), "tag_costs", "what a tagged message there and back spends time on"),
    (Test::Costs(Costs::Rpc), "rpc_costs", "what a call of RPC spends time on"),
];

fn entries() -> impl Iterator<Item = &'static Entry> {
    GROUPS.iter().flat_map(|group| group.tests)
}

/// All tests for a reader: a heading for each group, and a line for each test.
pub fn text() -> String {
    let mut text = String::new();
    for Group { heading, tests } in &GROUPS {
        let gap = if text.is_empty() { "" } else { "\n" };
        // Writing to a string does not fail.
        let _ = writeln!(text, "{gap}{heading}");
        for (_, name, what) in *tests {
            let _ = writeln!(text, "  {name:17}  {what}");
        }
    }
    text
}

impl Test {
    /// Returns the names of all tests.
    pub fn names() -> impl Iterator<Item = PossibleValue> {
        entries().map(|(_, name, what)| PossibleValue::new(*name).help(*what))
    }

    /// The test of a name that is among [`names`](Self::names).
    pub fn named(text: &str) -> Self {
        let found = entries().find(|(_, name, _)| *name == text);
        found.map(|(test, ..)| *test).expect("only names of tests are accepted")
    }

    /// The name by which the test is chosen.
    pub fn name(self) -> &'static str {
        entries().find(|(test, ..)| *test == self).map_or("", |(_, name, _)| name)
    }
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum;

    use super::*;

    fn variants<T: ValueEnum>(test: fn(T) -> Test) -> Vec<Test> {
        T::value_variants().iter().cloned().map(test).collect()
    }

    /// Every test of the enum.
    fn all() -> Vec<Test> {
        use Test::{BystanderLat, BytestreamBw, FrameBw, FrameLat, IdleCpu, TcpBw, TcpLat, UdpBw};
        use Test::{Layers, UdpLat, WakeLat};
        let single = [
            FrameLat,
            FrameBw,
            TcpLat,
            TcpBw,
            UdpLat,
            UdpBw,
            WakeLat,
            BystanderLat,
            IdleCpu,
            BytestreamBw,
            Layers,
        ];
        // A variant that this does not name does not compile: add it to those above or below.
        let _ = |test: Test| match test {
            FrameLat | FrameBw | TcpLat | TcpBw | UdpLat | UdpBw | WakeLat | BystanderLat
            | IdleCpu | BytestreamBw | Layers => {}
            Test::Verbs(_) | Test::Am(_) | Test::Rpc(_) | Test::Tags(_) | Test::Groups(_) => {}
            Test::Streams(_) | Test::SplitC(_) | Test::LogP(_) | Test::Costs(_) => {}
        };
        [
            single.to_vec(),
            variants(Test::Verbs),
            variants(Test::Am),
            variants(Test::Rpc),
            variants(Test::Tags),
            variants(Test::Groups),
            variants(Test::Streams),
            variants(Test::SplitC),
            variants(Test::LogP),
            variants(Test::Costs),
        ]
        .concat()
    }

    #[test]
    fn each_test_is_listed_once_and_by_a_name_of_its_own() {
        for test in all() {
            let listed = entries().filter(|(one, ..)| *one == test).count();
            assert_eq!(listed, 1, "{test:?}");
            let name = test.name();
            assert_eq!(entries().filter(|(_, other, _)| *other == name).count(), 1, "{name}");
        }
        assert_eq!(entries().count(), all().len());
    }

    #[test]
    fn the_list_fits_a_terminal_of_80_columns() {
        let text = text();
        let widest = text.lines().max_by_key(|line| line.chars().count()).expect("lines");
        assert!(widest.chars().count() <= 80, "{widest}");
    }
}
