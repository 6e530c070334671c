//! Messages one way, in batches that are posted with one ring of the doorbell.
//!
//! The receiver checks each batch, and sends how many messages it has checked. Only that lets the
//! sender post more, not the delivery by the NIC. The last message of a batch has an immediate,
//! which tells the receiver that the batch has arrived, and asks for a completion, which frees the
//! batch's slots in the queue. Other messages ask for one only if it brings a buffer back. If
//! memory is mapped, the immediate comes in a message of its own, because a write into mapped
//! memory sends no packet. In tests of reads, the sender checks what it has read, and sends a
//! message only at the end.

mod receiver;
mod sender;
mod shape;

use doorbell_verbs::{Buf, Memory, QueuesConfig};

use super::contents::{Contents, Landing, Layout, Source};
use super::end::End;
use crate::perf::Plan;
use crate::perf::ends::peer::Peer;
use crate::perf::figures::Quantity;
use crate::perf::plan::test::Verb;
use crate::perf::shared::ledger::Tally;
use receiver::Receiver;
use sender::{Maker, Sender};
use shape::{Line, Shape};

pub async fn run(
    verb: Verb,
    end: &mut End,
    plan: &Plan,
    peer: &mut Peer,
) -> anyhow::Result<Option<(u64, Quantity)>> {
    let shape = Shape::of(plan.size, end.nic.capabilities());
    let layout = Layout::new(plan.size, shape.window);
    // One more than there are places, so that successive messages in a place are different.
    let pieces = shape.window + 1;
    let lands = match verb {
        Verb::SendBw => false,
        Verb::ReadBw => true,
        _ => !end.leads,
    };
    let within = if lands { layout } else { Layout::new(0, 1) };
    let mut landing = Landing::new(end, within, pieces)?;
    if verb == Verb::ReadBw && !end.leads {
        landing.fill()?;
    }
    let line = connect(verb, end, plan.size, shape, &landing).await?;
    let found = if end.leads {
        // An end that reads sends no contents.
        let source = match verb {
            Verb::ReadBw => Source::new(0, 1),
            _ => Source::new(plan.size, pieces),
        };
        let maker = Maker { verb, layout, theirs: line.theirs, source, landing };
        let mut sender = Sender { shape, line, maker, sent: 0, checked: 0 };
        let found = sender.lead(end, plan).await?;
        end.part(peer)?;
        Some(found)
    } else {
        let contents = Contents::new(plan.size, pieces);
        let (size, tally) = (plan.size, Tally::default());
        let mut receiver = Receiver { verb, size, shape, line, contents, landing, tally };
        receiver.follow(end).await?;
        end.part(peer)?;
        None
    };
    Ok(found)
}

/// Connects with room for a window of requests, and with the receives that an end needs.
async fn connect(
    verb: Verb,
    end: &mut End,
    size: usize,
    shape: Shape,
    landing: &Landing,
) -> anyhow::Result<Line> {
    /// The length of the receiver's message that says how many messages it has checked.
    const SAID: usize = 8;
    let batches = shape.window / shape.batch + 2;
    let (count, room) = match (end.leads, verb) {
        (true, _) => (batches, Some(SAID)),
        (false, Verb::SendBw) => (shape.window, Some(size)),
        (false, Verb::WriteImmBw) => (shape.window, None),
        (false, _) => (batches, None),
    };
    let receives =
        (0..count).map(|_| room.map_or(Memory::None, |room| Buf::with_capacity(room).into()));
    // With mapped memory, each batch is followed by a message that has its immediate.
    let (send_depth, receive_depth) = ((shape.window + batches) as usize, count as usize);
    let completions = end.nic.completion_queue(send_depth + receive_depth)?;
    let mut config = QueuesConfig::new(&completions);
    (config.send_depth, config.receive_depth) = (send_depth, receive_depth);
    let (queues, theirs) = end.line(&config, receives, &landing.memory).await?;
    let mapped = match verb {
        Verb::WriteBw => end.map(&queues.connection, &landing.memory, theirs).await?,
        _ => None,
    };
    Ok(Line { queues, completions, theirs, mapped })
}
