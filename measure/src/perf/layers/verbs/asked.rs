//! The latencies of a write, a read and an atomic operation, each from the call to its completion.
//!
//! A measurement consists of batches, here called pieces. After each piece the clock is stopped,
//! and the contents of the memory are checked on the side where they are.

use anyhow::{Context, bail, ensure};
use doorbell_verbs::{Buf, Data, Memory, QueuePair, QueuePairConfig, RemoteMemory, Segment};

use super::contents::{Landing, Layout, Source};
use super::end::End;
use crate::perf::Plan;
use crate::perf::ends::peer::Peer;
use crate::perf::figures::Quantity;
use crate::perf::figures::latencies::Latencies;
use crate::perf::plan::test::Verb;

/// The number of operations in a piece. Each operation has memory of its own, so a piece has fewer
/// long ones.
fn piece(size: usize) -> u64 {
    (0x1_0000 / size as u64).clamp(2, 1024)
}

/// The message after a piece: how many operations there were, and whether no other piece follows.
type Told = [u8; 9];

pub async fn run(
    verb: Verb,
    end: &mut End,
    plan: &Plan,
    peer: &mut Peer,
) -> anyhow::Result<Option<(u64, Quantity)>> {
    let piece = piece(plan.size);
    let layout = Layout::new(plan.size, piece);
    let mut landing = Landing::new(end, layout, piece)?;
    if verb == Verb::ReadLat && !end.leads {
        landing.fill()?;
    }
    let own = end.domain.queue_pair(&QueuePairConfig::default())?;
    own.post_receive(Buf::with_capacity(size_of::<Told>()))?;
    let (pair, theirs) = end.join(own, &landing.memory).await?;
    let _mapped = match verb {
        Verb::WriteDoneLat => end.map(pair.connection(), &landing.memory, theirs).await?,
        _ => None,
    };
    let found = match end.leads {
        true => {
            let source = Source::new(plan.size, piece);
            let mut asker = Asker { verb, pair: &pair, layout, landing, theirs, source };
            Some(asker.lead(end, plan, piece).await?)
        }
        false => follow(verb, &pair, landing).await.map(|()| None)?,
    };
    end.part(peer)?;
    Ok(found)
}

struct Asker<'p> {
    verb: Verb,
    pair: &'p QueuePair,
    layout: Layout,
    /// The memory that reads bring their contents to.
    landing: Landing,
    theirs: RemoteMemory,
    source: Source,
}

impl Asker<'_> {
    async fn lead(
        &mut self,
        end: &End,
        plan: &Plan,
        piece: u64,
    ) -> anyhow::Result<(u64, Quantity)> {
        let mut times = Latencies::new(plan.amount, plan.meter());
        let (mut number, mut last) = (0, false);
        while !last {
            let first = number;
            times.resume();
            while !last && number < first + piece {
                last = plan.amount.is_over(number + 1, || times.passed());
                self.ask(number, first / piece).await?;
                times.lap();
                number += 1;
                end.beat.count();
            }
            self.settle(first..number, first / piece, last).await?;
        }
        Ok((times.len(), Quantity::Latency(times.summary(1))))
    }

    /// Makes one operation, in the piece with the number `piece`.
    #[inline]
    async fn ask(&mut self, number: u64, piece: u64) -> anyhow::Result<()> {
        match self.verb {
            Verb::WriteDoneLat => {
                let data = self.source.next(number, number + 1).context("its buffer came back")?;
                let to = self.layout.part_of(&self.theirs, number)?;
                let copied = matches!(data, Data::Inline(_));
                let buffer = self.pair.write(data, to).await?;
                if !copied {
                    self.source.give_back(buffer);
                }
            }
            Verb::ReadLat => {
                // Each piece reads from other places, so that what an earlier piece has left in the
                // same memory here is not taken for what was read.
                let from = self.layout.part_of(&self.theirs, number + piece)?;
                let into: Segment = self.landing.segment(number)?;
                self.pair.read(into, from).await?;
            }
            Verb::CasLat => {
                let before =
                    self.pair.compare_swap(self.theirs.at(0, 8)?, number, number + 1).await?;
                ensure!(before == number, "swap {number} found {before}");
            }
            _ => {
                let before = self.pair.fetch_add(self.theirs.at(0, 8)?, 1).await?;
                ensure!(before == number, "addition {number} found {before}");
            }
        }
        Ok(())
    }

    /// Has a piece checked: what was read on this side, and all else by the other end.
    async fn settle(
        &mut self,
        numbers: std::ops::Range<u64>,
        piece: u64,
        last: bool,
    ) -> anyhow::Result<()> {
        if self.verb == Verb::ReadLat {
            for number in numbers.clone() {
                let read = self.layout.place(number + piece);
                ensure!(
                    self.landing.holds(number, (read, read + 1), true),
                    "read {number} has not brought what is there"
                );
            }
        }
        let mut told = Told::default();
        told[..8].copy_from_slice(&numbers.end.to_le_bytes());
        told[8] = last.into();
        self.pair.send_inline(&told).await?;
        let answer = self.pair.receive().await?;
        self.pair.post_receive(answer.data)?;
        Ok(())
    }
}

/// Checks this side's memory after each piece, and answers once it holds what it should.
async fn follow(verb: Verb, pair: &QueuePair, mut landing: Landing) -> anyhow::Result<()> {
    let mut checked = 0;
    loop {
        let message = pair.receive().await?;
        let (count, last) = message.data.split_first_chunk().context("how many there were")?;
        let (count, last) = (u64::from_le_bytes(*count), last == [1]);
        match verb {
            Verb::WriteDoneLat => {
                for number in checked..count {
                    ensure!(
                        landing.holds(number, (number, number + 1), true),
                        "write {number} is not what it should be"
                    );
                }
            }
            Verb::CasLat | Verb::FaaLat => {
                let found = landing.word(0);
                ensure!(found == count, "after {count} operations on it the word is {found}");
            }
            Verb::ReadLat => {}
            _ => bail!("nothing is asked in this test"),
        }
        checked = count;
        pair.post_receive(Memory::Buf(message.data))?;
        pair.send_inline(&[]).await?;
        if last {
            return Ok(());
        }
    }
}
