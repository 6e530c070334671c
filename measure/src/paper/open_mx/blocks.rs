//! Figure 14: the size of packets, and the blocks of large messages.

use doorbell_report::{Axis, Figure, Lines, Note, Section, Series, Value};
use serde_json::json;

use crate::judging::{claim, is_below, is_between, ratio};
use crate::paper::bench::{Bench, Run};
use crate::paper::length::Of;
use crate::paper::titles;

/// The MTUs, and the bytes that a packet has with each.
const MTUS: [(&str, &str); 2] = [("1500", "1024"), ("9000", "4096")];
/// The bytes of a block, from eight packets of 4 kB on, as the paper has them.
const BLOCKS: [&str; 3] = ["32768", "131072", "262144"];
/// How many blocks are under way at a time, as the paper has it.
const UNDER_WAY: &str = "4";
/// The length of the messages.
const LARGE: &str = "1048576";
pub const TESTS: usize = MTUS.len() * BLOCKS.len();
/// For how long a run measures.
const SECONDS: Of<f64> = Of { full: 0.4, quick: 0.1, brief: 0.01 };

/// The throughput in mebibytes a second, by the bytes of a block.
type Rates = Vec<(f64, Value)>;

pub fn section(bench: &mut Bench) -> Section {
    let mut section = Section::new("Figure 14: packets and blocks of large messages").paragraph(
        "A receiver pulls a large message in blocks, of which four are under way at a time: here a \
         block is an RDMA read. The paper has blocks of 8 and of 32 packets of 4 kB, and packets of \
         up to 9000 bytes; InfiniBand's have up to 4096.",
    );
    for device in bench.devices() {
        let all = MTUS.map(|(mtu, _)| rates(bench, &device, mtu));
        let mut lines =
            Lines::new(Axis::bytes("Length of a block"), Axis::log("Throughput", "MiB/s"));
        for ((_, packet), rates) in MTUS.iter().zip(&all) {
            lines = lines.series(Series::new(format!("packets of {packet} bytes"), rates.clone()));
        }
        let begin = format!("The paper's figure 14: throughput of 1 MiB by blocks, over {device}");
        let title = titles::at(&begin, &lines, 32_768.0);
        section = section.figure(
            Figure::new(format!("figure-14-{device}"), title, lines)
                .sentence("The paper's figure has no numbers in its text."),
        );
        section = notes(&device, &all).into_iter().fold(section, Section::note);
    }
    section
}

fn rates(bench: &mut Bench, device: &str, mtu: &str) -> Rates {
    let mut rates = Vec::new();
    for block in BLOCKS {
        let arguments = ["--size", LARGE, "--mtu", mtu, "--block", block, "--blocks", UNDER_WAY];
        let rows =
            bench.rows(Run { test: "group_pingpong", device, arguments: &arguments }, SECONDS);
        let size: u64 = LARGE.parse().expect("it is a number");
        let rate = rows.get(&[("size", json!(size))], "mib_per_s");
        let block = block.parse().expect("it is a number");
        rates.extend(rate.map(|rate| (block, rate)));
    }
    rates
}

fn at(rates: &Rates, block: f64) -> Option<Value> {
    rates.iter().find(|(of, _)| *of == block).map(|(_, rate)| *rate)
}

fn notes(device: &str, [small, large]: &[Rates; 2]) -> Vec<Note> {
    let (eight, thirty_two) = (32_768.0, 131_072.0);
    let mut notes = Vec::new();
    if let (Some(small), Some(large)) = (at(small, eight), at(large, eight)) {
        notes.push(claim(
            is_below(small, large),
            format!(
                "Larger packets are significantly faster in all cases (§5.5). Over {device}, blocks \
                 of 32 KiB: {:.0} MiB/s with packets of 1024 bytes, {:.0} with 4096.",
                small.value, large.value
            ),
        ));
    }
    if let (Some(eight), Some(thirty_two)) = (at(large, eight), at(large, thirty_two)) {
        notes.push(claim(
            is_between(ratio(thirty_two, eight), 0.9, 1.5),
            format!(
                "Longer blocks help much where the latency is high, and little in the tuned case \
                 (§5.5; here judged as less than half as fast again). Over {device}, from 8 to 32 \
                 packets of 4 KiB: {:.0} and {:.0} MiB/s, {:.2} times.",
                eight.value,
                thirty_two.value,
                thirty_two.value / eight.value
            ),
        ));
    }
    notes
}
