//! Payloads placed in the peer's segment, one behind the other, as credits come back.
//!
//! Each lands where one landed a window before, which was handled when a credit for this one came.
//! Each has its number in its last word, and not all are checked [wholly].

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use anyhow::bail;
use doorbell_am::{Handlers, Peer, Placing, RequestId};
use doorbell_verbs::{Buf, Memory, Region};

use super::messages::{COUNTED, END, count, until_end};
use crate::perf::figures::Quantity;
use crate::perf::layers::following::Told;
use crate::perf::layers::verbs::Beat;
use crate::perf::shared::pattern::{Pattern, wholly};
use crate::perf::{Amount, Plan};

const LANDED: RequestId<()> = RequestId::new(1, "landed");

/// How many are under way at the most: half a megabyte, so that half of them leave together while
/// the other half is on its way, and all of them stay in caches. Where frames hold `run`s of
/// packets it pays to have more, and it is as much as `write_bw` has.
fn window(plan: &Plan, run: u32) -> usize {
    let bytes = if run > 1 { 1 << 21 } else { 1 << 19 };
    (bytes / plan.size).clamp(4, 64).min(plan.credits.max(4))
}

/// How many may be under way and not handled.
fn places(plan: &Plan) -> u64 {
    plan.credits as u64
}

fn stride(plan: &Plan) -> u64 {
    plan.size.next_multiple_of(64) as u64
}

/// How much memory they land in.
pub fn room(plan: &Plan) -> usize {
    (places(plan) * stride(plan)) as usize
}

fn offset(number: u64, plan: &Plan) -> u64 {
    number % places(plan) * stride(plan)
}

/// The handlers of the end in whose memory they land.
pub fn handlers(segment: &Region, plan: &Plan, run: u32, told: &Arc<Told>) -> Handlers {
    let window = window(plan, run) as u64;
    let (segment, plan, seen) = (segment.clone(), plan.clone(), told.clone());
    let (pattern, mut found) = (Pattern::new(plan.size), vec![0; plan.size]);
    let handlers = Handlers::new().request(LANDED, move |request, ()| {
        let number = seen.count.load(Ordering::Relaxed);
        let start = offset(number, &plan);
        let right = request.placed() == Some(start..start + plan.size as u64)
            && is_there(&segment, (number, window), &plan, &pattern, &mut found);
        if !right {
            count(&seen.wrong);
        }
        seen.count.store(number + 1, Ordering::Relaxed);
    });
    until_end(handlers, told)
}

fn is_there(
    segment: &Region,
    (number, window): (u64, u64),
    plan: &Plan,
    pattern: &Pattern,
    found: &mut [u8],
) -> bool {
    let (start, last) = (offset(number, plan) as usize, plan.size - 8);
    let whole = wholly(plan.size, number);
    let from = if whole { 0 } else { last };
    let read = segment.read_at(start + from, &mut found[from..]).is_ok();
    let body = !whole || found[..last] == pattern.of(number % window, plan.size)[..last];
    read && body && found[last..] == number.to_le_bytes()
}

pub async fn run(
    peer: &Peer,
    plan: &Plan,
    run: u32,
    beat: &Beat,
) -> anyhow::Result<(u64, Quantity)> {
    let pattern = Pattern::new(plan.size);
    let filled = |number| Buf::from(pattern.of(number, plan.size).to_vec());
    // They come back in the order in which they went, so each has the same piece of the pattern.
    let window = window(plan, run);
    let mut ready: VecDeque<Buf> = (0..window as u64).map(filled).collect();
    let mut under_way: VecDeque<Placing> = VecDeque::with_capacity(window);
    let (meter, began) = (plan.meter(), Instant::now());
    let mut sent = 0;
    loop {
        if ready.is_empty() {
            for _ in 0..window / 2 {
                ready.push_back(back(&mut under_way).await?);
            }
        }
        let Some(mut data) = ready.pop_front() else { bail!("no buffer has come back") };
        let last = data.len() - 8;
        data[last..].copy_from_slice(&u64::to_le_bytes(sent));
        under_way.push_back(peer.place(LANDED, (), offset(sent, plan), data).await?);
        sent += 1;
        let over = match plan.amount {
            Amount::Times(times) => sent >= times,
            // The clock is looked at once for those that leave together.
            Amount::For(time) => ready.is_empty() && began.elapsed() >= time,
        };
        if ready.is_empty() {
            beat.count();
            meter.at(sent, began.elapsed());
        }
        if over {
            break;
        }
    }
    while !under_way.is_empty() {
        back(&mut under_way).await?;
    }
    // By the way of what is long, if sizes have their own.
    let ended = peer.call_with(END, (), &[0; 4096]).await?;
    let (count, wrong) = ended.arguments(COUNTED)?;
    let took = began.elapsed();
    if (count, wrong) != (sent, 0) {
        bail!("of {sent} payloads {count} came, and {wrong} of them were wrong");
    }
    Ok((sent, Quantity::Rate(sent as f64 / took.as_secs_f64())))
}

/// The buffer that has been under way longest.
async fn back(under_way: &mut VecDeque<Placing>) -> anyhow::Result<Buf> {
    let Some(placing) = under_way.pop_front() else { bail!("nothing is under way") };
    match placing.done().await? {
        Memory::Buf(buffer) => Ok(buffer),
        other => bail!("a buffer came back as {} bytes of something else", other.filled()),
    }
}
