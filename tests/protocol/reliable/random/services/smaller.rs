//! Programs with something taken away.

use doorbell_simulation::Faults;

use super::super::smaller::spans;
use super::message::{Message, Place, What};
use super::program::{Op, Program};

/// Programs with something taken away, those with the most first.
pub fn smaller(program: &Program) -> Vec<Program> {
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
        for span in spans(content.ops.len()) {
            offer(&|program| drop(program.rounds[round].ops.drain(span.clone())));
        }
        for (pair, streams) in content.streams.iter().enumerate() {
            for (end, stream) in streams.iter().enumerate() {
                for at in 0..stream.len() {
                    offer(&|program| {
                        program.rounds[round].streams[pair][end].remove(at);
                    });
                }
                for (at, message) in stream.iter().enumerate().filter(|(_, m)| m.imm.is_some()) {
                    let plainer = Message { imm: None, ..message.clone() }.settled();
                    offer(&|program| {
                        program.rounds[round].streams[pair][end][at] = plainer.clone();
                    });
                }
            }
        }
    }
    for (pair, two) in program.pairs.iter().enumerate() {
        for end in (0..2).filter(|&end| two.ends[end].late) {
            offer(&|program| program.pairs[pair].ends[end].late = false);
        }
    }
    found
}

fn without_pair(program: &mut Program, gone: usize) {
    program.pairs.remove(gone);
    let stays = |pair: &mut usize| {
        let stays = *pair != gone;
        *pair -= usize::from(*pair > gone);
        stays
    };
    for round in &mut program.rounds {
        round.streams.remove(gone);
        for stream in round.streams.iter_mut().flatten() {
            stream
                .retain_mut(|message| named(&mut message.what).is_none_or(|(pair, _)| stays(pair)));
        }
        round.ops.retain_mut(|op| match op {
            Op::Send { pair, .. }
            | Op::Speak { pair, .. }
            | Op::Drain { pair, .. }
            | Op::Resume { pair, .. }
            | Op::Stop { pair, .. } => stays(pair),
            Op::Receive { .. }
            | Op::Poll { .. }
            | Op::Wait { .. }
            | Op::Arm { .. }
            | Op::Limit { .. }
            | Op::Silence { .. } => true,
        });
    }
}

/// Whom a message names.
fn named(what: &mut What) -> Option<&mut Place> {
    match what {
        What::Datagram(to) => Some(to),
        What::Send | What::Write => None,
    }
}
