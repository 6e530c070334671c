//! The latency of a word in mapped memory: each end stores it into the other's memory in turn.

use anyhow::{Context, bail};
use doorbell_verbs::{QueuePairConfig, Region, Rights, SharedMemory};

use super::end::End;
use crate::perf::Plan;
use crate::perf::ends::peer::Peer;
use crate::perf::figures::Quantity;
use crate::perf::figures::latencies::Latencies;

/// How often the word is looked at before other tasks may run.
const LOOKS: u32 = 10_000;

pub async fn run(
    end: &mut End,
    plan: &Plan,
    peer: &mut Peer,
) -> anyhow::Result<Option<(u64, Quantity)>> {
    let device = end.nic.capabilities().name;
    if device != "shm" {
        bail!("map_lat is of memory that both ends map: --device shm, and not {device}");
    }
    let memory = SharedMemory::new(64).context("memory to be mapped")?;
    let mine = end.domain.register_shared(memory, Rights::REMOTE)?;
    let own = end.domain.queue_pair(&QueuePairConfig::default())?;
    let (pair, theirs) = end.join(own, &mine).await?;
    pair.connection().grant(&mine)?;
    let theirs = pair.connection().map(theirs).await?;
    let found = match end.leads {
        true => Some(lead(end, plan, &mine, &theirs).await?),
        false => follow(end, &mine, &theirs).await.map(|()| None)?,
    };
    end.part(peer)?;
    Ok(found)
}

async fn lead(
    end: &End,
    plan: &Plan,
    mine: &Region,
    theirs: &Region,
) -> anyhow::Result<(u64, Quantity)> {
    let mut times = Latencies::new(plan.amount, plan.meter());
    times.resume();
    for round in 0.. {
        let last = plan.amount.is_over(round + 1, || times.passed());
        theirs.store(0, word(round, last))?;
        find(mine, round).await?;
        times.lap();
        end.beat.count();
        if last {
            break;
        }
    }
    Ok((times.len(), Quantity::Latency(times.summary(2))))
}

async fn follow(end: &End, mine: &Region, theirs: &Region) -> anyhow::Result<()> {
    for round in 0.. {
        let last = find(mine, round).await?;
        theirs.store(0, word(round, last))?;
        end.beat.count();
        if last {
            break;
        }
    }
    Ok(())
}

/// The word that is stored in a round. The memory is zero before.
#[inline]
const fn word(round: u64, last: bool) -> u64 {
    (round + 1) << 1 | last as u64
}

/// Waits for the word of a round. Returns whether the round is the last.
#[inline]
async fn find(mine: &Region, round: u64) -> anyhow::Result<bool> {
    loop {
        for _ in 0..LOOKS {
            let found = mine.load(0)?;
            match found >> 1 {
                there if there == round + 1 => return Ok(found & 1 == 1),
                there if there == round => std::hint::spin_loop(),
                _ => bail!("in round {round} the word is {found:#x}"),
            }
        }
        tokio::task::yield_now().await;
    }
}
