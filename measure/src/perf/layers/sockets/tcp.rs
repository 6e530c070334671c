//! A stream by TCP.

use std::net::{Shutdown, TcpStream};
use std::time::Instant;

use anyhow::{Context, bail};
use serde_json::json;

use super::ping_pong::{Socket, insist};
use crate::perf::Plan;
use crate::perf::ends::peer::Peer;
use crate::perf::figures::{Figures, Quantity};
use crate::perf::shared::pattern::Pattern;

/// The most bytes that are received at once.
const GULP: usize = 1 << 18;

pub fn run(stream: &TcpStream, plan: &Plan, peer: &mut Peer) -> anyhow::Result<Option<Figures>> {
    let pattern = Pattern::new(plan.size);
    peer.swap(&json!("begin"))?;
    if !peer.leads() {
        let found = follow(stream, &pattern, plan.size)?;
        peer.tell(&json!(found))?;
        return Ok(None);
    }
    let began = Instant::now();
    let end = plan.amount.packets(1);
    let mut sent = 0;
    while sent < end && !plan.amount.has_passed(|| began.elapsed()) {
        let message = pattern.of(sent, plan.size);
        let mut at = 0;
        while at < message.len() {
            at += insist("room for a message", || stream.send(&message[at..]))?;
        }
        sent += 1;
    }
    stream.shutdown(Shutdown::Write).context("ending the stream")?;
    let found = peer.hear()?;
    let took = began.elapsed();
    if found != json!(sent) {
        bail!("{sent} messages were sent, and the other end found {found}");
    }
    let found = Quantity::Rate(sent as f64 / took.as_secs_f64());
    Ok(Some(Figures { device: None, iters: sent, found }))
}

/// Receives until the stream ends; how many messages that were.
fn follow(stream: &TcpStream, pattern: &Pattern, size: usize) -> anyhow::Result<u64> {
    let mut gulp = vec![0; GULP];
    // The message that is being received, and how much of it was.
    let (mut number, mut within) = (0, 0);
    loop {
        let got = insist("the stream's end", || match stream.receive(&mut gulp) {
            Err(why) if why.kind() == std::io::ErrorKind::UnexpectedEof => Ok(0),
            other => other,
        })?;
        if got == 0 {
            break;
        }
        let mut rest = &gulp[..got];
        while !rest.is_empty() {
            let (part, behind) = rest.split_at(rest.len().min(size - within));
            if *part != pattern.of(number, size)[within..][..part.len()] {
                bail!("message {number} is not what it should be");
            }
            within += part.len();
            if within == size {
                (number, within) = (number + 1, 0);
            }
            rest = behind;
        }
    }
    if within > 0 {
        bail!("the stream ended within message {number}");
    }
    Ok(number)
}
