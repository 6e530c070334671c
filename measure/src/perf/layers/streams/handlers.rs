//! What the end that follows does with messages.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use doorbell_messages::streams::{Endpoint, EndpointBuilder, HandlerError, Incoming, StreamId};

use crate::perf::Plan;
use crate::perf::layers::following::Told;
use crate::perf::shared::pattern::{Pattern, wholly};

/// Messages to be sent back.
pub const PING: StreamId = StreamId::new("ping");
/// Messages that come back.
pub const PONG: StreamId = StreamId::new("pong");
/// Messages of one piece each, to be checked.
pub const NOTE: StreamId = StreamId::new("note");
/// A long message, each piece of which is checked.
pub const PIECES: StreamId = StreamId::new("pieces");
/// The last message of a test, with the number of all others, or of all pieces.
pub const END: StreamId = StreamId::new("end");

/// Returns whether bytes are the message of a number. Not all are compared [wholly].
pub fn is_right(pattern: &Pattern, number: u64, bytes: &[u8], size: usize) -> bool {
    let expected = pattern.of(number, size);
    match wholly(size, number) {
        true => bytes == expected,
        false => {
            bytes.len() == size
                && bytes.first_chunk::<8>() == expected.first_chunk()
                && bytes.last_chunk::<8>() == expected.last_chunk()
        }
    }
}

/// The handlers of the end that follows.
pub fn follower(plan: &Plan, told: &Arc<Told>) -> EndpointBuilder {
    let (size, pattern) = (plan.size, Arc::new(Pattern::new(plan.size)));
    let [ping, note, pieces] = [0; 3].map(|_| (pattern.clone(), told.clone()));
    let told = told.clone();
    Endpoint::builder()
        .handler(PING, move |mut message| {
            let (pattern, told) = ping.clone();
            async move {
                let number = told.count.load(Ordering::Relaxed);
                let body = message.receive(size).await?;
                told.count(is_right(&pattern, number, &body, size));
                let mut back = message.peer().begin(PONG).await?;
                back.send(pattern.of(number, size)).await?;
                Ok(back.end().await?)
            }
        })
        .handler(NOTE, move |mut message| {
            let (pattern, told) = note.clone();
            async move {
                // A short message is in one packet, and another is not, whose handlers interleave.
                let body = message.receive(size).await?;
                let number = told.count.load(Ordering::Relaxed);
                told.count(is_right(&pattern, number, &body, size));
                Ok(())
            }
        })
        .handler(PIECES, move |mut message| {
            let (pattern, told) = pieces.clone();
            async move {
                let count = u64::from_be_bytes(*number_of(&mut message).await?);
                let mut place = vec![0; size];
                for number in 0..count {
                    message.receive_into(&mut place).await?;
                    told.count(is_right(&pattern, number, &place, size));
                }
                Ok(())
            }
        })
        .handler(END, move |message| ends(message, told.clone()))
}

async fn number_of(message: &mut Incoming) -> Result<Box<[u8; 8]>, HandlerError> {
    let mut number = Box::new([0; 8]);
    message.receive_into(&mut *number).await?;
    Ok(number)
}

/// Waits until as many messages have come as there were, and tells the sender if some were wrong.
async fn ends(mut message: Incoming, told: Arc<Told>) -> Result<(), HandlerError> {
    let sent = u64::from_be_bytes(*number_of(&mut message).await?);
    while told.count.load(Ordering::Relaxed) < sent {
        tokio::task::yield_now().await;
    }
    told.ended.notify_one();
    match (told.count.load(Ordering::Relaxed), told.wrong.load(Ordering::Relaxed)) {
        (count, 0) if count == sent => Ok(()),
        (count, wrong) => {
            Err(format!("of {sent} messages {count} came, and {wrong} of them were wrong").into())
        }
    }
}
