//! A message there and one back, again and again, each answered with the NIC in hand.

use anyhow::{Context, bail};
use doorbell_verbs::{
    Buf, Completion, CompletionQueue, Done, Hand, Imm, Memory, Nic, QueuesConfig, ReceiveQueue,
    RemoteMemory, Send, SendQueue, WorkRequest, Write,
};

use super::contents::{Contents, Landing, Layout, Source};
use super::end::End;
use crate::perf::Plan;
use crate::perf::latencies::Latencies;
use crate::perf::peer::Peer;
use crate::perf::report::Found;
use crate::perf::test::Verb;

/// For how many messages there are buffers and receives. Of each end one is under way.
const COUNT: u64 = 8;

/// Where messages come in.
struct Inbox {
    verb: Verb,
    nic: Nic,
    received: CompletionQueue,
    receive: ReceiveQueue,
    /// What is sent, and lands in buffers.
    contents: Contents,
    /// Where what is written lands, always in the same place.
    landing: Landing,
}

/// Where they go out.
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
) -> anyhow::Result<Option<(u64, Found)>> {
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
    let (nic, contents) = (end.nic.clone(), Contents::new(plan.size, COUNT));
    let mut inbox = Inbox { verb, nic, received, receive: queues.receive, contents, landing };
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
) -> anyhow::Result<(u64, Found)> {
    let mut times = Latencies::new(plan.amount, plan.meter());
    let (mut round, mut last) = (0, plan.amount.is_over(1, || times.passed()));
    times.resume();
    outbox.post(None, round, last)?;
    loop {
        let (_, mut hand) = inbox.next(round).await?;
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
    Ok((times.len(), Found::Latency(times.summary(2))))
}

async fn follow(end: &End, inbox: &mut Inbox, outbox: &mut Outbox) -> anyhow::Result<()> {
    for round in 0.. {
        let (last, mut hand) = inbox.next(round).await?;
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
    /// The message of a round, and whether it is the last.
    #[inline]
    async fn next(&mut self, round: u64) -> anyhow::Result<(bool, Hand<'_>)> {
        match self.verb {
            Verb::WriteLat => Ok(self.written(round).await),
            Verb::SendLat => self.sent(round).await,
            _ => self.told(round).await,
        }
    }

    /// One that is found in memory. What is there and is something else may be part of it, and is
    /// looked at again.
    #[inline]
    async fn written(&mut self, round: u64) -> (bool, Hand<'_>) {
        let landing = &mut self.landing;
        let look = || {
            let found = landing.word(0);
            let came = found >> 1 == round + 1 && landing.holds(0, (round, found), true);
            came.then_some(found & 1 == 1)
        };
        self.nic.until_in_hand(look).await
    }

    /// One that is in a buffer. The last one has an immediate.
    #[inline]
    async fn sent(&mut self, round: u64) -> anyhow::Result<(bool, Hand<'_>)> {
        let hand = self.nic.until_completion(&mut self.received).await;
        let completion = self.received.peek().context("a completion that was waited for")?;
        let last = completion.attached.imm().is_some();
        let word = word(round, last);
        match (completion.outcome, &completion.memory) {
            (Ok(Done::Received), Memory::Buf(buffer))
                if self.contents.is(round, word, buffer, true) => {}
            _ => bail!("message {round} is not what it should be: {:?}", completion.outcome),
        }
        Ok((last, hand))
    }

    /// One that is in memory when its immediate tells so.
    #[inline]
    async fn told(&mut self, round: u64) -> anyhow::Result<(bool, Hand<'_>)> {
        let hand = self.nic.until_completion(&mut self.received).await;
        let completion = self.received.peek().context("a completion that was waited for")?;
        let Imm(told) = completion.attached.imm().context("a write without an immediate came")?;
        let last = told & 1 == 1;
        let word = word(round, last);
        if told != word as u32 || !self.landing.holds(0, (round, word), true) {
            bail!("write {round} is not what it should be: {:?}", completion.outcome);
        }
        Ok((last, hand))
    }

    /// Posts the receive again of the message that was answered.
    #[inline]
    fn give_back(&mut self) -> anyhow::Result<()> {
        if let Some(mut completion) = self.received.look() {
            let memory = std::mem::take(&mut completion.memory);
            drop(completion);
            self.receive.post(0, memory)?;
        }
        Ok(())
    }
}

/// The memory of a receive, if that was one.
#[inline]
pub fn received(completion: Completion) -> anyhow::Result<Memory> {
    match completion.outcome? {
        Done::Received | Done::ReceivedWrite => Ok(completion.memory),
        other => bail!("a receive was completed as {other:?}"),
    }
}

impl Outbox {
    /// Posts the message of a round, with the NIC in hand if it is.
    #[inline]
    fn post(&mut self, hand: Option<&mut Hand<'_>>, round: u64, last: bool) -> anyhow::Result<()> {
        let word = word(round, last);
        let data = self.source.next(round, word).context("no buffer has come back")?;
        let request: WorkRequest = match self.verb {
            Verb::WriteLat => Write::new(data, self.to)?.into(),
            Verb::SendLat if last => Send::new(data).imm(Imm(0)).into(),
            Verb::SendLat => Send::new(data).into(),
            _ => Write::new(data, self.to)?.imm(Imm(word as u32)).into(),
        };
        // Who has nothing to come back does not ask for a completion.
        let request = if self.source.copies() { request.unsignalled() } else { request };
        match hand {
            Some(hand) => hand.post(&mut self.send, request)?,
            None => self.send.post(request)?,
        }
        Ok(())
    }

    /// Sees to it that there is a buffer for the next message.
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
