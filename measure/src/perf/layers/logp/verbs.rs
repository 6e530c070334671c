//! Sends and receives of the NIC: each message is answered by another.

use anyhow::Context;
use doorbell_logp::Requester;
use doorbell_verbs::floor::{Copied, HeldNic};
use doorbell_verbs::work::Send;
use doorbell_verbs::{
    Buf, CompletionQueue, Imm, Memory, Nic, Queues, QueuesConfig, ReceiveQueue, Region, Registered,
    Rights, SendQueue, WorkRequest,
};

use super::rounds::{LONGEST, WINDOW, Waiting, measure};
use crate::perf::Plan;
use crate::perf::ends::peer::Peer;
use crate::perf::figures::logp_result::LogpResult;
use crate::perf::layers::verbs::{Beat, End, Guard, listen};

/// The bytes of the shortest message, as of an answer.
const SHORT: [u8; 16] = [7; 16];
/// How many receives there are: those of a window, and some more, since a message is answered
/// before its receive is posted again.
const RECEIVES: usize = WINDOW + 8;
/// After how many turns of the NIC the tasks of this thread run.
const TURNS: u32 = 1024;
/// How many sends there are for each that is told of.
const SIGNALLED: usize = 16;

/// The queues of an end.
struct Line {
    nic: Nic,
    send: SendQueue,
    receive: ReceiveQueue,
    received: CompletionQueue,
    /// Where some of the sends are told of, by which there is room again for more.
    told: CompletionQueue,
    payload: Registered,
    posted: usize,
    sent: u64,
    answered: u64,
    waiting: Waiting,
}

impl Line {
    /// Sends a short message: copied where the device can do that, posted where it can't.
    #[inline]
    fn send_short(&mut self, nic: &mut HeldNic<'_>, last: bool) -> anyhow::Result<()> {
        let imm = last.then_some(Imm(0));
        let message = Copied { imm, bytes: [&SHORT, &[]], signalled: false };
        if nic.send_copied(&mut self.send, &message) {
            return Ok(());
        }
        let send = Send::inline(&SHORT)?;
        let send = if last { send.imm(Imm(0)) } else { send };
        self.post(nic, send)
    }

    /// Posts a message of the measurement. Every [`SIGNALLED`]th message has a completion, which
    /// makes room for more.
    #[inline]
    fn post(&mut self, nic: &mut HeldNic<'_>, send: Send) -> anyhow::Result<()> {
        let mut request: WorkRequest = send.into();
        request.signalled = self.posted.is_multiple_of(SIGNALLED);
        self.posted += 1;
        Ok(nic.post(&mut self.send, request)?)
    }

    /// Takes the completions of sends: a queue of completions that is full holds up further sends.
    #[inline]
    fn make_room(&mut self) -> anyhow::Result<()> {
        while let Some(told) = self.told.look() {
            told.outcome?;
        }
        Ok(())
    }

    /// Takes the next message, if one has come. Returns its buffer, and whether it was the last
    /// one.
    #[inline]
    fn take(&mut self) -> anyhow::Result<Option<(Memory, bool)>> {
        let Some(mut completion) = self.received.look() else { return Ok(None) };
        completion.outcome?;
        let last = completion.attached.imm().is_some();
        Ok(Some((std::mem::take(&mut completion.memory), last)))
    }

    /// Answers every message until the last one.
    async fn answer(&mut self, beat: &Beat) -> anyhow::Result<()> {
        while !self.answer_for_a_while()? {
            beat.count();
            tokio::task::yield_now().await;
        }
        Ok(())
    }

    /// Answers the messages of some turns of the NIC. Returns whether the last one was among them.
    fn answer_for_a_while(&mut self) -> anyhow::Result<bool> {
        let nic = self.nic.clone();
        let mut over = false;
        for _ in 0..TURNS {
            let answered = nic.turn_and_find(|nic| self.answer_all(nic, &mut over).transpose());
            answered.transpose()?;
        }
        Ok(over)
    }

    /// Answers what has come, each message before its buffer is posted again. Returns whether
    /// anything had come.
    #[inline]
    fn answer_all(&mut self, mut nic: HeldNic<'_>, over: &mut bool) -> anyhow::Result<Option<()>> {
        self.make_room()?;
        let mut found = None;
        while self.send.room() > 0
            && let Some((buffer, last)) = self.take()?
        {
            self.send_short(&mut nic, false)?;
            self.receive.post(0, buffer)?;
            *over |= last;
            found = Some(());
        }
        Ok(found)
    }

    /// Counts the answers that have come, and posts their buffers again. Returns whether any had.
    #[inline]
    fn count_answers(&mut self) -> anyhow::Result<Option<()>> {
        self.make_room()?;
        let before = self.answered;
        while let Some((buffer, _)) = self.take()? {
            self.answered += 1;
            self.receive.post(0, buffer)?;
        }
        Ok((self.answered != before).then_some(()))
    }
}

impl Requester for Line {
    type Error = anyhow::Error;

    #[inline]
    fn send(&mut self, bytes: usize) -> anyhow::Result<()> {
        while self.sent - self.answered >= WINDOW as u64 || self.send.room() == 0 {
            self.poll()?;
        }
        self.sent += 1;
        let mut nic = HeldNic::none();
        match bytes {
            0 => self.send_short(&mut nic, false),
            _ => {
                let data = self.payload.slice(0..bytes).context("the payload is shorter")?;
                self.post(&mut nic, Send::new(data))
            }
        }
    }

    #[inline]
    fn poll(&mut self) -> anyhow::Result<()> {
        let nic = self.nic.clone();
        let found = nic.turn_and_find(|_| self.count_answers().transpose()).transpose()?;
        self.waiting.look(found.is_some())
    }

    #[inline]
    fn answered(&self) -> u64 {
        self.answered
    }
}

pub async fn run(
    nic: Nic,
    guard: &Guard,
    plan: &Plan,
    peer: &mut Peer,
) -> anyhow::Result<Option<(u64, LogpResult)>> {
    let leads = peer.leads();
    let listener = guard.run(listen(&nic, leads)).await?;
    let mut end = End::new(nic.clone(), listener, guard.beat(), plan, peer)?;
    let beat = guard.beat();
    let found = guard.run(async {
        let (told, received) =
            (nic.completion_queue(2 * WINDOW)?, nic.completion_queue(4 * WINDOW)?);
        let config = QueuesConfig {
            send_depth: 2 * WINDOW,
            receive_depth: RECEIVES,
            ..QueuesConfig::new(&told).receives_to(&received)
        };
        // The end that answers takes the long ones.
        let room = if leads { SHORT.len() } else { LONGEST };
        let buffers = (0..RECEIVES).map(|_| Memory::Buf(Buf::with_capacity(room)));
        let payload = end.domain.register(Region::new(LONGEST), Rights::LOCAL_WRITE)?;
        let (queues, _) = end.line(&config, buffers, &payload).await?;
        let Queues { send, receive, .. } = queues;
        let (posted, sent, answered, nic) = (0, 0, 0, nic.clone());
        let waiting = Waiting::default();
        let mut line =
            Line { nic, send, receive, received, told, payload, posted, sent, answered, waiting };
        if !leads {
            line.answer(&beat).await?;
            return Ok((None, line));
        }
        let (rounds, known, mut line) = measure(line, plan, &beat).await?;
        line.send_short(&mut HeldNic::none(), true)?;
        while line.answered <= line.sent {
            line.poll()?;
            tokio::task::yield_now().await;
        }
        Ok((Some((rounds, known)), line))
    });
    // The connection stays until the other end has taken everything.
    let (found, _line) = found.await?;
    end.part(peer)?;
    Ok(found)
}
