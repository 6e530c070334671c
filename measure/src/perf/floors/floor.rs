//! The layers, each with the layer that it stands on and the two tests that measure it.

use std::fmt;

use serde_json::Value;

use crate::perf::plan::test::{Am, Rpc, SplitC, Tags, Test, Verb};

/// A layer of Doorbell, with the tests that measure it.
pub struct Floor {
    pub name: &'static str,
    /// The place of the layer below among [`FLOORS`].
    pub below: Option<usize>,
    pub latency: Run,
    pub rate: Run,
}

/// A test, with the arguments that it has besides those of every test.
pub struct Run {
    pub test: Test,
    pub arguments: &'static [&'static str],
}

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&[&[self.test.name()][..], self.arguments].concat().join(" "))
    }
}

/// A run without arguments of its own.
const fn plain(test: Test) -> Run {
    Run { test, arguments: &[] }
}

/// The place of Active Messages among [`FLOORS`], which three layers stand on.
const ACTIVE_MESSAGES: usize = 2;

/// The layers, each behind the layer that it stands on. Latencies are of 16 bytes, or of a word for
/// Split-C; rates are of 8 bytes, and of calls with 64 bytes, 64 of them in flight.
pub const FLOORS: [Floor; 7] = [
    Floor {
        name: "frames",
        below: None,
        latency: plain(Test::FrameLat),
        rate: Run { test: Test::FrameBw, arguments: &["--size", "8"] },
    },
    Floor {
        name: "sends",
        below: Some(0),
        latency: plain(Test::Verbs(Verb::SendLat)),
        rate: Run { test: Test::Verbs(Verb::SendBw), arguments: &["--size", "8"] },
    },
    Floor {
        name: "Active Messages",
        below: Some(1),
        latency: plain(Test::Am(Am::Lat)),
        rate: Run { test: Test::Am(Am::Bw), arguments: &["--credits", "256"] },
    },
    Floor {
        name: "tagged messages",
        below: Some(ACTIVE_MESSAGES),
        latency: plain(Test::Tags(Tags::Lat)),
        rate: plain(Test::Tags(Tags::Bw)),
    },
    Floor {
        name: "Split-C",
        below: Some(ACTIVE_MESSAGES),
        // Carriers that read and write by themselves do not stand on Active Messages.
        latency: Run { test: Test::SplitC(SplitC::GetLat), arguments: &["--carrier", "messages"] },
        rate: Run { test: Test::SplitC(SplitC::StoreBw), arguments: &["--carrier", "messages"] },
    },
    Floor {
        name: "typed calls",
        below: Some(ACTIVE_MESSAGES),
        latency: plain(Test::Am(Am::CallLat)),
        rate: Run { test: Test::Am(Am::CallBw), arguments: &["--in-flight", "64"] },
    },
    Floor {
        name: "RPC",
        below: Some(5),
        latency: Run { test: Test::Rpc(Rpc::Lat), arguments: &["--size", "16"] },
        rate: Run { test: Test::Rpc(Rpc::Bw), arguments: &["--in-flight", "64"] },
    },
];

/// The figures of a layer.
#[derive(Clone, Copy, Debug)]
pub struct Found {
    /// The latency one way, or half of the way there and back, in microseconds.
    pub latency: f64,
    /// Messages, or calls answered, in a second.
    pub rate: f64,
}

impl Found {
    /// Takes the figures from the lines of JSON of the two tests; `None` if they have none.
    pub fn of(floor: &Floor, latency: &Value, rate: &Value) -> Option<Self> {
        let time = latency["p50_us"].as_f64()?;
        let latency = if floor.latency.test.is_halved() { time } else { time / 2.0 };
        Some(Self { latency, rate: rate["msgs_per_s"].as_f64()? })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_layer_stands_on_one_that_is_measured_before() {
        for (place, floor) in FLOORS.iter().enumerate() {
            assert_eq!(floor.below.is_none(), place == 0, "{}", floor.name);
            assert!(floor.below.is_none_or(|below| below < place), "{}", floor.name);
        }
        assert_eq!(FLOORS[ACTIVE_MESSAGES].name, "Active Messages");
    }

    #[test]
    fn the_time_there_and_back_is_halved_where_the_test_has_not_halved_it() {
        let (time, rate) = (json!({ "p50_us": 3.0 }), json!({ "msgs_per_s": 7.0 }));
        for floor in &FLOORS {
            let whole = ["RPC", "Split-C"].contains(&floor.name);
            let found = Found::of(floor, &time, &rate).expect("both figures");
            assert_eq!(found.latency, if whole { 1.5 } else { 3.0 }, "{}", floor.name);
        }
    }
}
