//! The end that posts: sends and writes, or reads.

use std::time::Instant;

use anyhow::{Context, bail, ensure};
use doorbell_verbs::work::{Read, Send, Write};
use doorbell_verbs::{Completion, Done, Imm, Memory, RemoteMemory, WorkRequest};

use super::super::contents::{Landing, Layout, Source};
use super::super::end::End;
use super::shape::{LAST, Line, Shape};
use crate::perf::Plan;
use crate::perf::figures::Quantity;
use crate::perf::plan::test::Verb;
use crate::perf::shared::pattern::wholly;

/// Makes the requests of a stream.
pub struct Maker {
    pub verb: Verb,
    pub layout: Layout,
    pub theirs: RemoteMemory,
    pub source: Source,
    /// The memory that reads bring their contents to.
    pub landing: Landing,
}

impl Maker {
    /// Returns which of the other end's places a read fetches. The places are shifted by one each
    /// time that all were read, so that each place here gets other contents than before.
    #[inline]
    fn read(&self, number: u64, window: u64) -> u64 {
        self.layout.place(number + number / window)
    }

    /// Returns the request with a number. `told` is the immediate of the last request of a batch.
    #[inline]
    fn request(
        &mut self,
        number: u64,
        told: Option<u32>,
        window: u64,
    ) -> anyhow::Result<WorkRequest> {
        if self.verb == Verb::ReadBw {
            let from = self.layout.part_of(&self.theirs, self.read(number, window))?;
            let request = Read::new(self.landing.segment(number)?, from)?.id(number + 1);
            return Ok(if told.is_some() { request } else { request.unsignalled() }.into());
        }
        let data = self.source.next(number, number + 1).context("no buffer has come back")?;
        let request: WorkRequest = match self.verb {
            Verb::SendBw => Send::new(data).into(),
            _ => Write::new(data, self.layout.part_of(&self.theirs, number)?)?.into(),
        };
        let numbered = (self.verb == Verb::WriteImmBw).then_some(number as u32 & !LAST);
        let request = match told.or(numbered) {
            Some(imm) => request.with_imm(Imm(imm)),
            None => request,
        };
        let signalled = told.is_some() || !self.source.copies();
        Ok(if signalled { request } else { request.unsignalled() })
    }
}

pub struct Sender {
    pub shape: Shape,
    pub line: Line,
    pub maker: Maker,
    /// How many messages were posted.
    pub sent: u64,
    /// How many of them were checked.
    pub checked: u64,
}

impl Sender {
    pub async fn lead(&mut self, end: &End, plan: &Plan) -> anyhow::Result<(u64, Quantity)> {
        let total = plan.amount.packets(1);
        let began = Instant::now();
        let mut last = false;
        while !last || self.checked < self.sent {
            while !last && self.has_room() {
                let count = self.shape.batch.min(total - self.sent);
                last = self.sent + count == total || plan.amount.has_passed(|| began.elapsed());
                self.post(count, last)?;
            }
            let completion = self.line.completions.completion().await;
            self.hear(completion)?;
            end.beat.count();
        }
        let took = began.elapsed();
        if self.maker.verb == Verb::ReadBw {
            self.tell_the_end().await?;
        }
        Ok((self.sent, Quantity::Rate(self.sent as f64 / took.as_secs_f64())))
    }

    /// Returns whether a batch has room at the receiver, in the queue, and in buffers.
    #[inline]
    fn has_room(&self) -> bool {
        let Shape { batch, window } = self.shape;
        self.sent + batch <= self.checked + window
            && self.line.queues.send.room() as u64 > batch
            && self.maker.source.has(batch)
    }

    #[inline]
    fn post(&mut self, count: u64, last: bool) -> anyhow::Result<()> {
        let Self { shape, line, maker, sent, .. } = self;
        let numbers = *sent..*sent + count;
        let mut batch = line.queues.send.batch();
        for number in numbers.clone() {
            let is_last = number + 1 == numbers.end;
            let told = is_last.then_some(number as u32 & !LAST | if last { LAST } else { 0 });
            let apart = told.filter(|_| line.mapped.is_some());
            batch.post(maker.request(number, told.xor(apart), shape.window)?)?;
            if let Some(told) = apart {
                batch.post(Send::inline(&[])?.imm(Imm(told)))?;
            }
        }
        *sent = numbers.end;
        Ok(())
    }

    #[inline]
    fn hear(&mut self, completion: Completion) -> anyhow::Result<()> {
        match completion.outcome? {
            Done::Received => {
                let Memory::Buf(said) = completion.memory else { bail!("a receive had no buffer") };
                let said_of = said.first_chunk().context("how many the receiver has checked")?;
                self.checked = u64::from_le_bytes(*said_of);
                self.line.queues.receive.post(0, said)?;
            }
            Done::Read => self.check(completion.id)?,
            _ => self.maker.source.give_back(completion.memory),
        }
        Ok(())
    }

    /// Checks the contents of the reads before number `end`.
    fn check(&mut self, end: u64) -> anyhow::Result<()> {
        let (window, size) = (self.shape.window, self.maker.layout.size());
        for number in self.checked..end {
            let read = self.maker.read(number, window);
            let right = self.maker.landing.holds(number, (read, read + 1), wholly(size, number));
            ensure!(right, "read {number} has not brought what is there");
        }
        self.checked = end;
        Ok(())
    }

    /// Tells the other end that the reads are over, and awaits its answer. An end that is only read
    /// from notices nothing by itself.
    async fn tell_the_end(&mut self) -> anyhow::Result<()> {
        let nothing = Send::inline(&[])?.imm(Imm(LAST)).unsignalled();
        self.line.queues.send.post(nothing)?;
        let answer = self.line.completions.completion().await;
        answer.outcome?;
        Ok(())
    }
}
