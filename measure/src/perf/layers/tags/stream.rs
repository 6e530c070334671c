//! Messages one way, as many at a time as programs have under way.

use std::collections::VecDeque;
use std::time::Instant;

use doorbell_messages::{Match, Message, Peer as Other};

use super::end::{DATA, END, End, word_at};
use crate::perf::Amount;
use crate::perf::figures::Quantity;

/// The receives that are posted ahead.
const RECEIVES: usize = 64;
/// The most sends whose outcomes were not awaited.
const SENDS: usize = 64;
/// The messages that come before one that is received ahead of them.
const BATCH: u64 = 256;
/// The match bits of a message behind a batch.
const MARK: u64 = 4;
/// The match bits of the message by which the next batch is asked for.
const NEXT: u64 = 5;
/// Messages between looks at the clock.
const A_LOOK: u64 = 256;

/// Sends messages one behind the other. If they come in batches, the other end asks for each batch.
pub async fn lead(
    end: &End<'_>,
    other: &Other,
    in_batches: bool,
) -> anyhow::Result<(u64, Quantity)> {
    let &End { endpoint, messages, plan, beat } = end;
    let (meter, began) = (plan.meter(), Instant::now());
    let (mut sends, mut sent) = (VecDeque::with_capacity(SENDS), 0);
    loop {
        sends.push_back(other.send(DATA, messages.body(sent)));
        sent += 1;
        if in_batches && sent.is_multiple_of(BATCH) {
            // Messages that the window has no room for leave when they are received, behind this.
            let mark = other.send(MARK, "");
            endpoint.receive(Match::exactly(NEXT)).await?;
            mark.await?;
            for send in sends.drain(..) {
                send.await?;
            }
        } else if !in_batches && sends.len() == SENDS {
            sends.pop_front().expect("there are sends").await?;
        }
        if sent.is_multiple_of(A_LOOK) {
            beat.count();
            meter.at(sent, began.elapsed());
        }
        let over = match plan.amount {
            Amount::Times(times) => sent >= times,
            Amount::For(time) => {
                (sent.is_multiple_of(A_LOOK) || plan.size > 1 << 16) && began.elapsed() >= time
            }
        };
        if over {
            break;
        }
    }
    end.say_end(other, sent).await?;
    for send in sends {
        send.await?;
    }
    let took = began.elapsed();
    Ok((sent, Quantity::Rate(sent as f64 / took.as_secs_f64())))
}

/// Receives messages by receives that are posted ahead.
pub async fn follow(end: &End<'_>) -> anyhow::Result<()> {
    let mut tally = Tally::default();
    let ahead = || end.endpoint.receive(Match::any());
    let mut receives: VecDeque<_> = (0..RECEIVES).map(|_| ahead()).collect();
    loop {
        let message = receives.pop_front().expect("receives are posted").await?;
        if message.bits == END {
            return end.answer_end(&message, tally.wrong, tally.count).await;
        }
        receives.push_back(ahead());
        tally.takes(end, &message);
    }
}

/// Receives messages when a whole batch of them has come.
pub async fn follow_unexpected(end: &End<'_>) -> anyhow::Result<()> {
    let mut tally = Tally::default();
    loop {
        let signal = end.endpoint.receive(Match::bits(MARK & END).mask(!(MARK | END))).await?;
        let rest = || word_at(&signal.body, 0).saturating_sub(tally.count);
        let batch = if signal.bits == MARK { BATCH } else { rest() };
        for _ in 0..batch {
            let message = end.endpoint.receive(Match::exactly(DATA)).await?;
            tally.takes(end, &message);
        }
        if signal.bits == END {
            return end.answer_end(&signal, tally.wrong, tally.count).await;
        }
        signal.from.send(NEXT, "").await?;
    }
}

/// How many messages came, and how many of them were wrong.
#[derive(Default)]
struct Tally {
    count: u64,
    wrong: u64,
}

impl Tally {
    fn takes(&mut self, end: &End<'_>, message: &Message) {
        self.wrong += u64::from(!end.messages.is(self.count, &message.body));
        self.count += 1;
        if self.count.is_multiple_of(A_LOOK) {
            end.beat.count();
        }
    }
}
