//! The messages to and fro.

use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use doorbell_verbs::work::{Datagram, Send};
use doorbell_verbs::{
    Buf, Completion, CompletionQueue, DATAGRAM_HEADER, Datagrams, Destination, Done, Memory,
    Queues, ReceiveQueue, SendQueue, WorkRequest,
};

use super::args::Args;
use super::content::Content;

/// The number that marks the completions of receives.
pub const RECEIVE: u64 = 1;
/// The number that marks the completions of sends.
const SEND: u64 = 2;

/// How long the other side must be silent before this one goes, which it may need to hear again
/// that its last message has arrived.
const QUIET: Duration = Duration::from_millis(300);

/// How long the last message may be unconfirmed. Who has all messages goes, with rdma-core's
/// programs at once, and if its acknowledgement was lost, there is nobody to repeat it.
const LAST: Duration = Duration::from_secs(3);

/// The queues, whatever kind they are of.
pub enum Players {
    Pair(Queues),
    Datagrams(Datagrams, Destination),
}

impl Players {
    fn queues(&mut self) -> (&mut SendQueue, &mut ReceiveQueue) {
        match self {
            Self::Pair(queues) => (&mut queues.send, &mut queues.receive),
            Self::Datagrams(pair, _) => (&mut pair.send, &mut pair.receive),
        }
    }

    fn request(&self, data: Buf) -> WorkRequest {
        match self {
            Self::Pair(_) => Send::new(data).id(SEND).awaited().into(),
            Self::Datagrams(_, to) => Datagram::new(data, to).id(SEND).into(),
        }
    }

    /// Returns how many bytes precede the message in a receive buffer.
    fn ahead(&self) -> usize {
        match self {
            Self::Pair(_) => 0,
            Self::Datagrams(..) => DATAGRAM_HEADER,
        }
    }
}

/// The counters of the NIC when the game is over.
pub struct Counted {
    pub sent_again: u64,
    pub timeouts: u64,
    pub received: u64,
    /// Packets that were not for it, or not as they must be.
    pub refused: u64,
}

/// A side of the game that is connected to the other.
pub struct End {
    completions: CompletionQueue,
    players: Players,
}

/// How far it is.
struct Rally {
    content: Content,
    sent: u64,
    received: u64,
    /// Whether the last of this side's is on its way, and the last of the other's awaited.
    sends: bool,
    awaits: bool,
    buffer: Buf,
}

impl End {
    pub fn new(completions: CompletionQueue, players: Players) -> Self {
        Self { completions, players }
    }

    /// Sends when it is this side's turn, until each has sent as many as were to be. How long it
    /// took, and whether the last message was confirmed.
    pub async fn play(&mut self, args: &Args) -> anyhow::Result<(Duration, bool)> {
        let start = Instant::now();
        let asks = args.host.is_some();
        let mut rally = Rally {
            content: Content::new(asks, args.size()),
            sent: 0,
            received: 0,
            sends: false,
            awaits: true,
            buffer: Buf::with_capacity(args.size()),
        };
        if asks {
            self.send(&mut rally)?;
        }
        while rally.sent < args.iters || rally.received < args.iters {
            let last = rally.received == args.iters && rally.sent + 1 == args.iters;
            let patience = if last { args.patience().min(LAST) } else { args.patience() };
            let next = tokio::time::timeout(patience, self.completions.completion()).await;
            let confirmed = next.as_ref().is_ok_and(|done| done.outcome.is_ok());
            if last && !confirmed {
                return Ok((start.elapsed(), false));
            }
            let next = next.with_context(|| {
                format!(
                    "nothing came for {} s, with {} of {} messages sent and {} received: is the \
                     other side told the same? Without answers (-t uc, ud), one may be lost",
                    args.patience, rally.sent, args.iters, rally.received
                )
            })?;
            self.take(next, &mut rally, args)?;
            if !rally.sends && !rally.awaits && rally.sent < args.iters {
                self.send(&mut rally)?;
            }
        }
        Ok((start.elapsed(), true))
    }

    fn send(&mut self, rally: &mut Rally) -> anyhow::Result<()> {
        let mut buffer = std::mem::take(&mut rally.buffer);
        rally.content.fill(&mut buffer, rally.sent);
        let request = self.players.request(buffer);
        self.players.queues().0.post(request).context("sending")?;
        (rally.sends, rally.awaits) = (true, true);
        Ok(())
    }

    fn take(&mut self, done: Completion, rally: &mut Rally, args: &Args) -> anyhow::Result<()> {
        let number = if done.id == RECEIVE { rally.received } else { rally.sent };
        let what = if done.id == RECEIVE { "receiving" } else { "sending" };
        let outcome = done.outcome.with_context(|| format!("{what} message {number}"))?;
        let Memory::Buf(mut buffer) = done.memory else { bail!("{what} took no buffer") };
        match outcome {
            Done::Sent => {
                (rally.sent, rally.sends, rally.buffer) = (number + 1, false, buffer);
            }
            _ => {
                ensure!(rally.awaits, "message {number} came before this side has sent its own");
                let message = buffer.get(self.players.ahead()..).unwrap_or_default();
                ensure!(
                    message.len() == args.size(),
                    "message {number} is of {} bytes, and not of {}: tell both sides one size",
                    message.len(),
                    args.size()
                );
                if args.check
                    && let Some(amiss) = rally.content.amiss(message, number)
                {
                    bail!("{amiss}");
                }
                (rally.received, rally.awaits) = (number + 1, false);
                buffer.clear();
                self.players.queues().1.post(RECEIVE, buffer).context("posting a receive")?;
            }
        }
        Ok(())
    }

    /// Stays until the other side is silent, but no longer than that.
    pub async fn linger(&mut self, most: Duration) {
        let (mut heard, start) = (None, Instant::now());
        while start.elapsed() < most {
            let now = self.completions.nic().statistics().device.frames_received;
            if heard.replace(now) == Some(now) {
                return;
            }
            tokio::time::sleep(QUIET).await;
        }
    }

    /// Returns the counters of the NIC so far.
    pub fn counted(&self) -> Counted {
        let nic = self.completions.nic().statistics().nic;
        let elsewhere = nic.no_such_queue_pair + nic.strangers + nic.other_partition;
        let unfit = nic.malformed + nic.wrong_service + nic.wrong_state + nic.wrong_qkey;
        Counted {
            sent_again: nic.retransmitted,
            timeouts: nic.timeouts,
            received: nic.received,
            refused: elsewhere + unfit,
        }
    }
}
