//! Byte streams over queue pairs, as a program on Tokio uses them: writes of one length, until the
//! reader has checked the last byte.

use std::process;
use std::time::Instant;

use anyhow::{Context, bail};
use doorbell_bytestream::{Endpoint, ServiceId, Stream};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::verbs::{Beat, Guard, open};
use crate::perf::ends::peer::Peer;
use crate::perf::figures::{Figures, Quantity};
use crate::perf::shared::pattern::{Pattern, wholly};
use crate::perf::{Place, Plan};

/// The most bytes that are read at once.
const GULP: usize = 1 << 18;

/// Writes, or reads, between looks at what watches over the test.
const A_LOOK: u64 = 64;

/// Runs one end of the test.
pub fn run(plan: &Plan, peer: &mut Peer, place: &Place<'_>) -> anyhow::Result<Option<Figures>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.context("a runtime")?.block_on(play(plan, peer, place))
}

async fn play(plan: &Plan, peer: &mut Peer, place: &Place<'_>) -> anyhow::Result<Option<Figures>> {
    let nic = open(plan, place)?;
    let guard = Guard::over(&nic, peer)?;
    let endpoint = Endpoint::on(&nic).await?;
    let beat = guard.beat();
    if !peer.leads() {
        let service = ServiceId(0x0D00_12BE_0000_0000 | u64::from(process::id()));
        let mut listener = guard.run(async { Ok(endpoint.listen(service).await?) }).await?;
        peer.tell(&json!(listener.name().to_string()))?;
        let accepted = async { read(listener.accept().await?, plan.size, &beat).await };
        let found = guard.run(accepted).await?;
        peer.tell(&json!(found))?;
        return Ok(None);
    }
    let name = peer.hear()?;
    let name = name.as_str().context("the other end's name is no text")?;
    let mut stream = guard.run(async { Ok(endpoint.connect(name).await?) }).await?;
    let began = Instant::now();
    let sent = guard.run(write(&mut stream, plan, &beat)).await?;
    let found = peer.hear()?;
    let took = began.elapsed();
    if found != json!(sent) {
        bail!("{sent} writes were made, and the other end found {found}");
    }
    let found = Quantity::Rate(sent as f64 / took.as_secs_f64());
    Ok(Some(Figures { device: Some(nic.capabilities().name), iters: sent, found }))
}

/// Writes until the test is over, and ends the stream. Returns the number of writes.
async fn write(stream: &mut Stream, plan: &Plan, beat: &Beat) -> anyhow::Result<u64> {
    let pattern = Pattern::new(plan.size);
    let (meter, began) = (plan.meter(), Instant::now());
    let mut sent = 0;
    loop {
        stream.write_all(pattern.of(sent, plan.size)).await?;
        sent += 1;
        if sent.is_multiple_of(A_LOOK) {
            beat.count();
            meter.at(sent, began.elapsed());
        }
        if plan.amount.is_over(sent, || began.elapsed()) {
            break;
        }
    }
    stream.shutdown().await?;
    Ok(sent)
}

/// Reads until the stream ends, and checks what is read. Returns the number of writes that were
/// read.
async fn read(mut stream: Stream, size: usize, beat: &Beat) -> anyhow::Result<u64> {
    let pattern = Pattern::new(size);
    let mut gulp = vec![0; GULP];
    // The number of the write that is being read, how much of that write was read, and how many
    // reads gave anything.
    let (mut number, mut within, mut reads) = (0, 0, 0_u64);
    loop {
        let got = stream.read(&mut gulp).await?;
        if got == 0 {
            break;
        }
        let mut rest = &gulp[..got];
        while !rest.is_empty() {
            let (part, behind) = rest.split_at(rest.len().min(size - within));
            if !is_right(part, pattern.of(number, size), within, wholly(size, number)) {
                bail!("write {number} is not what it should be");
            }
            within += part.len();
            if within == size {
                (number, within) = (number + 1, 0);
            }
            rest = behind;
        }
        reads += 1;
        if reads.is_multiple_of(A_LOOK) {
            beat.count();
        }
    }
    if within > 0 {
        bail!("the stream ended within write {number}");
    }
    Ok(number)
}

/// Returns whether a part of a write is the expected one. Compares it wholly, or by its first and
/// last bytes, which tell it from other parts.
fn is_right(part: &[u8], expected: &[u8], at: usize, wholly: bool) -> bool {
    const ENDS: usize = 16;
    let expected = &expected[at..][..part.len()];
    match part.len().checked_sub(ENDS) {
        Some(last) if !wholly => {
            part[..ENDS] == expected[..ENDS] && part[last..] == expected[last..]
        }
        _ => part == expected,
    }
}
