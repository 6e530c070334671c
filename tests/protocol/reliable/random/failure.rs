//! A failing run told of.

use std::fmt;
use std::path::Path;

use super::message::Stream;
use super::program::Program;
use super::strategy::{Failed, Random, program};

/// All that somebody needs who looks for the reason.
pub fn tell<P: Random>(seed: u64, smallest: &Failed<P>) -> String {
    let (name, test) = (P::NAME, P::TEST);
    let (why, frames) = again(&program::<P>(seed), &format!("{name}-seed-{seed}.pcap"));
    let (_, fewer) = again(&smallest.program, &format!("{name}-seed-{seed}-smallest.pcap"));
    format!(
        "seed {seed}: {why}\n\
         replay it by: DOORBELL_SEED={seed} cargo test -p doorbell-protocol-tests {test}\n\
         {frames}\n\
         the smallest program that was found to fail, too: {}\n\
         {fewer}\n{}",
        smallest.why, smallest.program
    )
}

/// Runs a program once more: what is wrong with it, and where its frames are.
fn again(program: &impl Random, file: &str) -> (String, String) {
    let report = program.run();
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(file);
    let frames = match std::fs::write(&path, report.pcap) {
        Ok(()) => format!("its frames are in {}", path.display()),
        Err(why) => format!("its frames could not be written to {}: {why}", path.display()),
    };
    (report.result.err().unwrap_or_else(|| "the second time it did not fail".into()), frames)
}

impl fmt::Display for Program {
    /// A line for each of its parts.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { luck, mood, net, nodes, queues, pairs, rounds } = self;
        writeln!(f, "  {mood:?}, {nodes} nodes, luck {luck}, {net:?}")?;
        for (number, queue) in queues.iter().enumerate() {
            writeln!(f, "  completion queue {number}: {queue:?}")?;
        }
        for (number, ends) in pairs.iter().enumerate() {
            writeln!(f, "  pair {number}, end 0: {:?}", ends[0])?;
            writeln!(f, "  pair {number}, end 1: {:?}", ends[1])?;
        }
        for (number, round) in rounds.iter().enumerate() {
            writeln!(f, "  round {number}, dropped at its end: {}", round.dropped)?;
            for (pair, streams) in round.streams.iter().enumerate() {
                for (end, stream) in streams.iter().enumerate() {
                    let Stream { messages, target, library, spare, early } = stream;
                    write!(
                        f,
                        "  from end {end} of pair {pair}: target {target}, library {library}"
                    )?;
                    writeln!(f, ", {spare} receives to spare, {early} early")?;
                    for (index, message) in messages.iter().enumerate() {
                        writeln!(f, "    message {index}: {message:?}")?;
                    }
                }
            }
            for op in &round.ops {
                writeln!(f, "  program: {op:?}")?;
            }
        }
        Ok(())
    }
}
