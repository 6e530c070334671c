//! Programs with something taken away.

use std::ops::Range;

use doorbell_simulation::Faults;

use super::message::{Extra, Message, Store, What};
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
                for at in 0..stream.messages.len() {
                    offer(&|program| {
                        program.rounds[round].streams[pair][end].messages.remove(at);
                    });
                }
                for (at, message) in stream.messages.iter().enumerate() {
                    for plainer in plainer(message) {
                        offer(&|program| {
                            program.rounds[round].streams[pair][end].messages[at] = plainer.clone();
                        });
                    }
                }
            }
        }
    }
    for (pair, ends) in program.pairs.iter().enumerate() {
        for (end, own) in ends.iter().enumerate() {
            if own.asks > 1 {
                offer(&|program| program.pairs[pair][end].asks = 1);
            }
            if own.reads > 1 && ends[1 - end].asks <= 1 {
                offer(&|program| program.pairs[pair][end].reads = 1);
            }
        }
    }
    found
}

/// What may be taken away of so many, the most first: halves, quarters, one at a time.
pub fn spans(count: usize) -> impl Iterator<Item = Range<usize>> {
    let sizes = [count / 2, count / 4, 1].into_iter().filter(|&size| size > 0);
    sizes.flat_map(move |size| (0..count).step_by(size).map(move |at| at..(at + size).min(count)))
}

/// A message with less to it.
fn plainer(message: &Message) -> Vec<Message> {
    let mut found = Vec::new();
    if message.wrong.is_some() {
        return found;
    }
    let takes_back = message.extra == Extra::Invalidate;
    // Some of those that take a key back must wait for reads by it.
    if message.fenced && !takes_back {
        found.push(Message { fenced: false, ..message.clone() });
    }
    if message.extra != Extra::Nothing {
        found.push(Message { extra: Extra::Nothing, ..message.clone() });
    }
    let what = match message.what {
        What::Write { to, lent: true } => Some(What::Write { to, lent: false }),
        What::Read { from: Store::Lent, at } => Some(What::Read { from: Store::Target, at }),
        What::Swap { word, .. } => Some(What::Add { word }),
        _ => None,
    };
    found.extend(what.map(|what| Message { what, ..message.clone() }));
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
