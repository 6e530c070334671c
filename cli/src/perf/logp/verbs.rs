//! Sends and receives of the NIC: each message is answered by another.

use anyhow::Context;
use doorbell_logp::Requester;
use doorbell_verbs::work::Send;
use doorbell_verbs::{
    Buf, CompletionQueue, Data, Imm, Inline, Memory, Nic, Queues, QueuesConfig, ReceiveQueue,
    Region, Registered, Rights, SendQueue, WorkRequest,
};

use super::{Known, LONGEST, WINDOW, Waiting, measure};
use crate::perf::Plan;
use crate::perf::peer::Peer;
use crate::perf::verbs::{Beat, End, Guard, listen, received};

/// The bytes of the shortest message, as of an answer.
const SHORT: [u8; 16] = [7; 16];
/// How many receives there are: those of a window, and some more, since a message is answered before
/// its receive is posted again.
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
    /// A message as a request. Some are told of when they have been sent.
    #[inline]
    fn request(&mut self, data: impl Into<Data>, last: bool) -> WorkRequest {
        let send = Send::new(data.into());
        let mut request: WorkRequest = if last { send.imm(Imm(0)) } else { send }.into();
        request.signalled = self.posted.is_multiple_of(SIGNALLED);
        self.posted += 1;
        request
    }

    #[inline]
    fn post(&mut self, data: impl Into<Data>, last: bool) -> anyhow::Result<()> {
        let request = self.request(data, last);
        Ok(self.send.post(request)?)
    }

    /// Takes what is told of sends: a queue of completions that is full holds up further sends.
    #[inline]
    fn make_room(&mut self) -> anyhow::Result<()> {
        while let Some(told) = self.told.poll() {
            told.outcome?;
        }
        Ok(())
    }

    /// Answers every message until the last one.
    async fn answer(&mut self, beat: &Beat) -> anyhow::Result<()> {
        while !self.answer_for_a_while()? {
            beat.count();
            tokio::task::yield_now().await;
        }
        Ok(())
    }

    /// Answers the messages of some turns of the NIC. Whether the last one was among them. The receive
    /// of a message is posted again when the answer has left.
    fn answer_for_a_while(&mut self) -> anyhow::Result<bool> {
        let mut over = false;
        for _ in 0..TURNS {
            self.nic.turn();
            while let Some(completion) = self.received.poll() {
                over |= completion.attached.imm().is_some();
                while self.send.room() == 0 {
                    self.nic.turn();
                    self.make_room()?;
                }
                self.post(inline(), false)?;
                self.receive.post(0, received(completion)?)?;
            }
            self.make_room()?;
        }
        Ok(over)
    }
}

fn inline() -> Inline {
    Inline::new(&SHORT).expect("it is short")
}

impl Requester for Line {
    type Error = anyhow::Error;

    #[inline]
    fn send(&mut self, bytes: usize) -> anyhow::Result<()> {
        while self.sent - self.answered >= WINDOW as u64 || self.send.room() == 0 {
            self.poll()?;
        }
        self.sent += 1;
        match bytes {
            0 => self.post(inline(), false),
            _ => {
                let data = self.payload.slice(0..bytes).context("the payload is shorter")?;
                self.post(data, false)
            }
        }
    }

    #[inline]
    fn poll(&mut self) -> anyhow::Result<()> {
        let before = self.answered;
        self.nic.turn();
        while let Some(completion) = self.received.poll() {
            self.answered += 1;
            self.receive.post(0, received(completion)?)?;
        }
        self.make_room()?;
        self.waiting.look(self.answered != before)
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
) -> anyhow::Result<Option<(u64, Known)>> {
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
        line.post(inline(), true)?;
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
