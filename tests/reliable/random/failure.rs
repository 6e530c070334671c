//! A failing run made smaller, and told of.

use std::fmt::Write;
use std::path::Path;

use doorbell_kit::Faults;

use super::program::{Op, Program};
use super::run::run;

/// How many runs it may take to make a failing program smaller.
const MOST_RUNS: usize = 2000;

/// All that somebody needs who looks for the reason.
pub fn tell(seed: u64, why: &str) -> String {
    let program = Program::draw(seed);
    let file = format!("reliable-seed-{seed}.pcap");
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(file);
    let written = std::fs::write(&path, run(&program).pcap);
    let capture = match written {
        Ok(()) => format!("its frames are in {}", path.display()),
        Err(why) => format!("its frames could not be written to {}: {why}", path.display()),
    };
    let (small, small_why) = shrink(program, why.to_owned());
    format!(
        "seed {seed}: {why}\n\
         replay it by: DOORBELL_SEED={seed} cargo test --test reliable random_programs\n\
         {capture}\n\
         a smaller program fails, too: {small_why}\n{}",
        text(&small)
    )
}

/// A program with less in it that fails, for whatever reason, and the reason.
fn shrink(mut program: Program, mut why: String) -> (Program, String) {
    let mut runs = 0;
    loop {
        let smaller = candidates(&program).into_iter().find_map(|candidate| {
            runs += 1;
            let failed = if runs < MOST_RUNS { run(&candidate).result.err() } else { None };
            failed.map(|why| (candidate, why))
        });
        match smaller {
            Some(found) => (program, why) = found,
            None => return (program, why),
        }
    }
}

/// Programs with something taken away, those with the most first.
fn candidates(program: &Program) -> Vec<Program> {
    let mut found = Vec::new();
    let mut offer = |change: &dyn Fn(&mut Program)| {
        let mut candidate = program.clone();
        change(&mut candidate);
        found.push(candidate);
    };
    for round in 0..program.rounds.len() {
        if program.rounds.len() > 1 {
            offer(&|program| drop(program.rounds.remove(round)));
        }
    }
    for pair in 0..program.pairs.len() {
        if program.pairs.len() > 1 {
            offer(&|program| without_pair(program, pair));
        }
    }
    if program.net.faults != Faults::NONE {
        offer(&|program| program.net.faults = Faults::NONE);
    }
    for (round, content) in program.rounds.iter().enumerate() {
        let count = content.ops.len();
        for size in [count / 2, count / 4, 1] {
            for at in (0..count).step_by(size.max(1)).filter(|_| size > 0) {
                offer(&|program| {
                    program.rounds[round].ops.drain(at..(at + size).min(count));
                });
            }
        }
        for (pair, streams) in content.streams.iter().enumerate() {
            for (end, stream) in streams.iter().enumerate() {
                for at in 0..stream.messages.len() {
                    offer(&|program| {
                        program.rounds[round].streams[pair][end].messages.remove(at);
                    });
                }
            }
        }
    }
    found
}

fn without_pair(program: &mut Program, gone: usize) {
    program.pairs.remove(gone);
    for round in &mut program.rounds {
        round.streams.remove(gone);
        round.ops.retain_mut(|op| match op {
            Op::Send { pair, .. }
            | Op::Receive { pair, .. }
            | Op::Drain { pair, .. }
            | Op::Resume { pair, .. }
            | Op::Stop { pair, .. }
            | Op::TakeDown { pair, .. }
            | Op::Revoke { pair, .. } => {
                let stays = *pair != gone;
                *pair -= usize::from(*pair > gone);
                stays
            }
            Op::Poll { .. } | Op::Wait { .. } | Op::Arm { .. } => true,
        });
    }
}

/// A program, a line for each of its parts.
fn text(program: &Program) -> String {
    let Program { seed, mood, net, nodes, queues, pairs, rounds } = program;
    let mut text = format!("  seed {seed}, {mood:?}, {nodes} nodes, {net:?}\n");
    let mut line = |what: &str, part: &dyn std::fmt::Debug| {
        writeln!(text, "  {what}: {part:?}").expect("a string takes everything");
    };
    for (number, queue) in queues.iter().enumerate() {
        line(&format!("completion queue {number}"), queue);
    }
    for (number, ends) in pairs.iter().enumerate() {
        line(&format!("pair {number}, end 0"), &ends[0]);
        line(&format!("pair {number}, end 1"), &ends[1]);
    }
    for (number, round) in rounds.iter().enumerate() {
        line("round", &number);
        for (pair, streams) in round.streams.iter().enumerate() {
            for (end, stream) in streams.iter().enumerate() {
                let spare = (stream.target, stream.early, stream.spare);
                line(&format!("from end {end} of pair {pair}: target, early, spare"), &spare);
                for (index, message) in stream.messages.iter().enumerate() {
                    line(&format!("  message {index}"), message);
                }
            }
        }
        for op in &round.ops {
            line("program", op);
        }
    }
    text
}
