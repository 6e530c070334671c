//! The latency of a message there and one back. Each end answers while it still holds the NIC's
//! lock, with which it has found the message.

use anyhow::{Context, bail};
use doorbell_verbs::floor::NicGuard;
use doorbell_verbs::work::{Send, Write};
use doorbell_verbs::{
    Buf, Completion, CompletionQueue, Data, Done, Imm, Memory, Nic, QueuesConfig, ReceiveQueue,
    RemoteMemory, SendQueue, WorkRequest,
};

use super::contents::{Contents, Landing, Layout, Source};
use super::end::End;
use crate::perf::Plan;
use crate::perf::ends::peer::Peer;
use crate::perf::figures::Quantity;
use crate::perf::figures::latencies::Latencies;
use crate::perf::plan::test::Verb;

/// The number of messages that there are buffers and receives for. Each end has one message under
/// way at a time.
const COUNT: u64 = 8;

/// The receiving side of an end.
struct Inbox {
    verb: Verb,
    received: CompletionQueue,
    receive: ReceiveQueue,
    /// The bytes that a message must have that was sent into a buffer.
    contents: Contents,
    /// The memory that the other end writes into, always in the same place.
    landing: Landing,
}

/// The sending side of an end.
struct Outbox {
    verb: Verb,
    send: SendQueue,
    sent: CompletionQueue,
    source: Source,
    to: RemoteMemory,
}

pub async fn run(
    verb: Verb,
    end: &mut End,
    plan: &Plan,
    peer: &mut Peer,
) -> anyhow::Result<Option<(u64, Quantity)>> {
    let layout = Layout::new(plan.size, 1);
    let landing = Landing::new(end, layout, COUNT)?;
    let receive = |_| match verb {
        Verb::SendLat => Memory::Buf(Buf::with_capacity(plan.size)),
        _ => Memory::None,
    };
    let (sent, received) = (end.nic.completion_queue(64)?, end.nic.completion_queue(64)?);
    let config = QueuesConfig::new(&sent).receives_to(&received);
    let (queues, theirs) = end.line(&config, (0..COUNT).map(receive), &landing.memory).await?;
    let _mapped = match verb {
        Verb::WriteLat => end.map(&queues.connection, &landing.memory, theirs).await?,
        _ => None,
    };
    let (to, source) = (layout.part_of(&theirs, 0)?, Source::new(plan.size, COUNT));
    let mut outbox = Outbox { verb, send: queues.send, sent, source, to };
    let contents = Contents::new(plan.size, COUNT);
    let mut inbox = Inbox { verb, received, receive: queues.receive, contents, landing };
    let found = match end.leads {
        true => Some(lead(end, plan, &mut inbox, &mut outbox).await?),
        false => follow(end, &mut inbox, &mut outbox).await.map(|()| None)?,
    };
    end.part(peer)?;
    Ok(found)
}

async fn lead(
    end: &End,
    plan: &Plan,
    inbox: &mut Inbox,
    outbox: &mut Outbox,
) -> anyhow::Result<(u64, Quantity)> {
    let mut times = Latencies::new(plan.amount, plan.meter());
    let (mut round, mut last) = (0, plan.amount.is_over(1, || times.passed()));
    times.resume();
    outbox.post(None, round, last)?;
    loop {
        let mut hand = inbox.arrival(&end.nic, round).await;
        inbox.check(round)?;
        times.lap();
        if last {
            break;
        }
        round += 1;
        last = plan.amount.is_over(round + 1, || times.passed());
        outbox.post(Some(&mut hand), round, last)?;
        drop(hand);
        inbox.give_back()?;
        outbox.restock().await?;
        end.beat.count();
    }
    Ok((times.len(), Quantity::Latency(times.summary(2))))
}

async fn follow(end: &End, inbox: &mut Inbox, outbox: &mut Outbox) -> anyhow::Result<()> {
    for round in 0.. {
        let mut hand = inbox.arrival(&end.nic, round).await;
        let last = inbox.check(round)?;
        outbox.post(Some(&mut hand), round, last)?;
        drop(hand);
        if last {
            break;
        }
        inbox.give_back()?;
        outbox.restock().await?;
        end.beat.count();
    }
    Ok(())
}

/// The word of a message that is written. No memory holds it before.
#[inline]
const fn word(round: u64, last: bool) -> u64 {
    (round + 1) << 1 | last as u64
}

impl Inbox {
    /// Waits for the message of a round. A written message is found by looking at the memory. As
    /// long as that has other contents, the message may have arrived in part, so it is looked at
    /// again.
    #[inline]
    async fn arrival<'n>(&mut self, nic: &'n Nic, round: u64) -> NicGuard<'n> {
        if self.verb != Verb::WriteLat {
            return nic.until_completion(&mut self.received).await;
        }
        let landing = &mut self.landing;
        let look = || {
            let found = landing.word(0);
            (found >> 1 == round + 1 && landing.holds(0, (round, found), true)).then_some(())
        };
        let ((), hand) = nic.until_held(look).await;
        hand
    }

    /// Checks the message of a round. Returns whether it is the last.
    #[inline]
    fn check(&mut self, round: u64) -> anyhow::Result<bool> {
        match self.verb {
            Verb::WriteLat => Ok(self.landing.word(0) & 1 == 1),
            Verb::SendLat => self.check_sent(round),
            _ => self.check_told(round),
        }
    }

    /// Checks a message that was sent into a buffer. The last one has an immediate. Returns whether
    /// it is the last.
    #[inline]
    fn check_sent(&mut self, round: u64) -> anyhow::Result<bool> {
        let completion = self.received.peek().context("a completion that was waited for")?;
        let last = completion.attached.imm().is_some();
        let word = word(round, last);
        match (&completion.outcome, &completion.memory) {
            (Ok(Done::Received), Memory::Buf(buffer))
                if self.contents.is(round, word, buffer, true) => {}
            _ => bail!("message {round} is not what it should be: {:?}", completion.outcome),
        }
        Ok(last)
    }

    /// Checks a message that was written into memory and announced by its immediate. Returns
    /// whether it is the last.
    #[inline]
    fn check_told(&mut self, round: u64) -> anyhow::Result<bool> {
        let completion = self.received.peek().context("a completion that was waited for")?;
        completion.outcome?;
        let Imm(told) = completion.attached.imm().context("a write without an immediate came")?;
        let last = told & 1 == 1;
        let word = word(round, last);
        if told != word as u32 || !self.landing.holds(0, (round, word), true) {
            bail!("write {round} is not what it should be");
        }
        Ok(last)
    }

    /// Posts another receive with the memory of the message that was answered, if it used one.
    #[inline]
    fn give_back(&mut self) -> anyhow::Result<()> {
        if self.verb == Verb::WriteLat {
            return Ok(());
        }
        let mut completion = self.received.look().context("a completion that was peeked at")?;
        let memory = std::mem::take(&mut completion.memory);
        drop(completion);
        Ok(self.receive.post(0, memory)?)
    }
}

/// Returns the memory of a completed receive.
#[inline]
pub fn received(completion: Completion) -> anyhow::Result<Memory> {
    match completion.outcome? {
        Done::Received | Done::ReceivedWrite => Ok(completion.memory),
        other => bail!("a receive was completed as {other:?}"),
    }
}

impl Outbox {
    /// Posts the message of a round, by the guard of the NIC if there is one.
    #[inline]
    fn post(
        &mut self,
        hand: Option<&mut NicGuard<'_>>,
        round: u64,
        last: bool,
    ) -> anyhow::Result<()> {
        let word = word(round, last);
        // Fast path: the compiler knows the length of the shortest messages, and so makes their
        // requests in place, as in programs whose messages have a fixed length.
        match self.source.size() {
            8 => self.carry(hand, self.source.word(word)?, word, last),
            16 => self.carry(hand, self.source.pair(round, word)?, word, last),
            _ => {
                let data = self.source.next(round, word).context("no buffer has come back")?;
                self.carry(hand, data, word, last)
            }
        }
    }

    #[inline(always)]
    fn carry(
        &mut self,
        hand: Option<&mut NicGuard<'_>>,
        data: Data,
        word: u64,
        last: bool,
    ) -> anyhow::Result<()> {
        match self.verb {
            Verb::WriteLat => self.put(hand, Write::new(data, self.to)?),
            Verb::SendLat if last => self.put(hand, Send::new(data).imm(Imm(0))),
            Verb::SendLat => self.put(hand, Send::new(data)),
            _ => self.put(hand, Write::new(data, self.to)?.imm(Imm(word as u32))),
        }
    }

    #[inline(always)]
    fn put(
        &mut self,
        hand: Option<&mut NicGuard<'_>>,
        request: impl Into<WorkRequest>,
    ) -> anyhow::Result<()> {
        let mut request: WorkRequest = request.into();
        // No completion is needed if it brings no buffer back.
        request.signalled = !self.source.copies();
        match hand {
            Some(hand) => hand.post(&mut self.send, request)?,
            None => self.send.post(request)?,
        }
        Ok(())
    }

    /// Waits until there is a buffer for the next message.
    #[inline]
    async fn restock(&mut self) -> anyhow::Result<()> {
        while !self.source.has(1) {
            let done = self.sent.completion().await;
            done.outcome?;
            self.source.give_back(done.memory);
        }
        Ok(())
    }
}
