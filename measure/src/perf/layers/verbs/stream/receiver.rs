//! The end that checks what was sent or written, and says so.

use anyhow::{Context, bail, ensure};
use doorbell_verbs::work::Send;
use doorbell_verbs::{Completion, Imm, Memory};

use super::super::contents::{Contents, Landing};
use super::super::end::End;
use super::super::ping_pong::received;
use super::shape::{LAST, Line, Shape};
use crate::perf::plan::test::Verb;
use crate::perf::shared::ledger::Tally;
use crate::perf::shared::pattern::wholly;

pub struct Receiver {
    pub verb: Verb,
    pub size: usize,
    pub shape: Shape,
    pub line: Line,
    /// The bytes that messages must have that are sent.
    pub contents: Contents,
    /// The memory that the other end writes into.
    pub landing: Landing,
    pub tally: Tally,
}

impl Receiver {
    /// Checks messages until the last, and after each batch says how many it has checked.
    pub async fn follow(&mut self, end: &End) -> anyhow::Result<()> {
        loop {
            let completion = self.line.completions.completion().await;
            end.beat.count();
            let Some(told) = self.receive(completion)? else { continue };
            self.tally.judge()?;
            if told & LAST != 0 {
                self.check_what_is_left()?;
            }
            let said = Send::inline(&self.tally.next.to_le_bytes())?.unsignalled();
            self.line.queues.send.post(said)?;
            if told & LAST != 0 {
                return Ok(());
            }
        }
    }

    /// Checks the messages that a completed receive announces. Returns the immediate if the message
    /// was the last of a batch.
    #[inline]
    fn receive(&mut self, completion: Completion) -> anyhow::Result<Option<u32>> {
        let imm = completion.attached.imm().map(|Imm(imm)| imm);
        let memory = received(completion)?;
        let next = self.tally.next;
        match (self.verb, &memory) {
            (Verb::SendBw, Memory::Buf(buffer)) => {
                let right = self.contents.is(next, next + 1, buffer, wholly(self.size, next));
                self.tally.enter(next, right);
            }
            (Verb::WriteBw, _) => self.check_to(imm.context("nobody was told of a write so")?),
            (Verb::WriteImmBw, _) => self.check_to(imm.context("a write had no immediate")?),
            (Verb::ReadBw, _) => {}
            _ => bail!("a message came without its buffer"),
        }
        self.line.queues.receive.post(0, memory)?;
        let ends = self.verb != Verb::WriteImmBw
            || self.tally.next.is_multiple_of(self.shape.batch)
            || imm.is_some_and(|imm| imm & LAST != 0);
        Ok(imm.filter(|_| ends))
    }

    /// Checks the messages up to the one whose number has the lower bits `told`.
    #[inline]
    fn check_to(&mut self, told: u32) {
        let ahead = told.wrapping_sub(self.tally.next as u32) & !LAST;
        for number in self.tally.next..=self.tally.next + u64::from(ahead) {
            let message = (number, number + 1);
            let right = self.landing.holds(number, message, wholly(self.size, number));
            self.tally.enter(number, right);
        }
    }

    /// Compares every byte of the writes that are in memory at the end. During the test, most long
    /// ones are compared in part.
    fn check_what_is_left(&mut self) -> anyhow::Result<()> {
        if matches!(self.verb, Verb::WriteBw | Verb::WriteImmBw) {
            let next = self.tally.next;
            for number in next.saturating_sub(self.shape.window)..next {
                let right = self.landing.holds(number, (number, number + 1), true);
                ensure!(right, "write {number} is not what it should be");
            }
        }
        Ok(())
    }
}
