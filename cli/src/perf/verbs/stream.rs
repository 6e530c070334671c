//! Messages one way, in batches that are posted with one ring of the doorbell.
//!
//! The receiver checks each batch, and says so: that, and not what the NIC alone has delivered, makes
//! room for more. The last message of a batch has an immediate, by which the receiver knows of it, and
//! a completion, after which its slots in the queue are free; others have one only if it brings a
//! buffer back. Who reads checks by itself, and tells the other end of nothing but the end.

use std::time::Instant;

use anyhow::{Context, bail, ensure};
use doorbell_verbs::{
    Buf, Completion, CompletionQueue, Done, Imm, Memory, Queues, QueuesConfig, Read, RemoteMemory,
    Send, WorkRequest, Write,
};

use super::contents::{Contents, Landing, Layout, Source};
use super::end::End;
use super::ping_pong::received;
use crate::perf::Plan;
use crate::perf::ledger::Tally;
use crate::perf::peer::Peer;
use crate::perf::report::Found;
use crate::perf::test::Verb;

/// Of an immediate: that there will be no more.
const LAST: u32 = 1 << 31;

/// Up to this size messages are checked wholly; of longer ones, each of so many, of others the word.
const SHORT: usize = 1024;
const EACH: u64 = 8;

/// How messages are bundled.
#[derive(Clone, Copy, Debug)]
struct Shape {
    /// Messages of a batch.
    batch: u64,
    /// Messages that were not checked yet, at most: so many batches that the next ones are posted
    /// while the first are checked, and together not much more than caches hold.
    window: u64,
}

impl Shape {
    fn of(size: usize) -> Self {
        let batch = (0x2_0000 / size.max(1) as u64).clamp(4, 256);
        Self { batch, window: 4 * batch }
    }
}

/// What either end has of the connection.
struct Line {
    queues: Queues,
    completions: CompletionQueue,
    theirs: RemoteMemory,
}

pub async fn run(
    verb: Verb,
    end: &mut End,
    plan: &Plan,
    peer: &mut Peer,
) -> anyhow::Result<Option<(u64, Found)>> {
    let shape = Shape::of(plan.size);
    let layout = Layout::new(plan.size, shape.window);
    // Of another number than the places: so what comes to a place is never what is there.
    let pieces = shape.window + 1;
    let lands = match verb {
        Verb::SendBw => false,
        Verb::ReadBw => true,
        _ => !end.leads,
    };
    let within = if lands { layout } else { Layout::new(0, 1) };
    let mut landing = Landing::new(&end.domain, within, pieces)?;
    if verb == Verb::ReadBw && !end.leads {
        landing.fill()?;
    }
    let line = connect(verb, end, plan.size, shape, &landing).await?;
    let found = if end.leads {
        // Who reads sends nothing.
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
    /// The bytes of what the receiver says.
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
    let (send_depth, receive_depth) = (shape.window as usize + 2, count as usize);
    let completions = end.nic.completion_queue(send_depth + receive_depth)?;
    let mut config = QueuesConfig::new(&completions);
    (config.send_depth, config.receive_depth) = (send_depth, receive_depth);
    let (queues, theirs) = end.line(&config, receives, &landing.memory).await?;
    Ok(Line { queues, completions, theirs })
}

/// Whether the contents of a message are looked at, and not its word alone.
#[inline]
fn wholly(size: usize, number: u64) -> bool {
    size <= SHORT || number.is_multiple_of(EACH)
}

/// Makes requests.
struct Maker {
    verb: Verb,
    layout: Layout,
    theirs: RemoteMemory,
    source: Source,
    /// Where what is read lands.
    landing: Landing,
}

impl Maker {
    /// What is read for a number: another place each time that all were.
    #[inline]
    fn read(&self, number: u64, window: u64) -> u64 {
        self.layout.place(number + number / window)
    }

    /// The request of a number. Of the last of a batch, `told` is what the receiver is to know of it.
    #[inline]
    fn request(
        &mut self,
        number: u64,
        told: Option<u32>,
        window: u64,
    ) -> anyhow::Result<WorkRequest> {
        if self.verb == Verb::ReadBw {
            let from = self.layout.part_of(&self.theirs, self.read(number, window))?;
            let request = Read::new(self.landing.segment(number)?, from).id(number + 1);
            return Ok(if told.is_some() { request } else { request.unsignalled() }.into());
        }
        let data = self.source.next(number, number + 1).context("no buffer has come back")?;
        let request: WorkRequest = match self.verb {
            Verb::SendBw => Send::new(data).into(),
            _ => Write::new(data, self.layout.part_of(&self.theirs, number)?).into(),
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

struct Sender {
    shape: Shape,
    line: Line,
    maker: Maker,
    /// How many messages were posted.
    sent: u64,
    /// How many of them were checked.
    checked: u64,
}

impl Sender {
    async fn lead(&mut self, end: &End, plan: &Plan) -> anyhow::Result<(u64, Found)> {
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
        Ok((self.sent, Found::Rate(self.sent as f64 / took.as_secs_f64())))
    }

    /// Whether there is room for a batch: at the receiver, in the queue, and in buffers.
    #[inline]
    fn has_room(&self) -> bool {
        let Shape { batch, window } = self.shape;
        self.sent + batch <= self.checked + window
            && self.line.queues.send.room() as u64 >= batch
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
            batch.post(maker.request(number, told, shape.window)?)?;
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

    /// Checks what was read, up to a number.
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

    /// Who was only read from knows of nothing: it is told, and answers.
    async fn tell_the_end(&mut self) -> anyhow::Result<()> {
        let nothing = Send::inline(&[])?.imm(Imm(LAST)).unsignalled();
        self.line.queues.send.post(nothing)?;
        let answer = self.line.completions.completion().await;
        answer.outcome?;
        Ok(())
    }
}

struct Receiver {
    verb: Verb,
    size: usize,
    shape: Shape,
    line: Line,
    /// Of what is sent.
    contents: Contents,
    /// Where what is written lands.
    landing: Landing,
    tally: Tally,
}

impl Receiver {
    /// Checks messages until the last, and after each batch says how many it has checked.
    async fn follow(&mut self, end: &End) -> anyhow::Result<()> {
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

    /// Takes what a receive tells of. If it was the last of a batch, the immediate that says so.
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

    /// Checks the messages up to the one whose number, but for its upper bits, is told.
    #[inline]
    fn check_to(&mut self, told: u32) {
        let ahead = told.wrapping_sub(self.tally.next as u32) & !LAST;
        for number in self.tally.next..=self.tally.next + u64::from(ahead) {
            let message = (number, number + 1);
            let right = self.landing.holds(number, message, wholly(self.size, number));
            self.tally.enter(number, right);
        }
    }

    /// Of what was written, what is in memory at the end is looked at wholly.
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
