//! The pump: sends the pieces of a stream as fast as its window allows.

use std::any::Any;
use std::future::poll_fn;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::task::Poll;

use bytes::Bytes;
use doorbell_am::{Peer, SendError};
use futures_core::Stream;
use futures_util::StreamExt;

use super::OVERHEAD;
use super::table::Streams;
use super::window::{Closed, Window};
use crate::message::Pieces;
use crate::status::{Status, panic_text};
use crate::wire::{CallKey, PIECE, PieceKind, piece};

/// Sends a stream to its end, or until the reader wants no more or has gone. A piece is fetched
/// only when the window has room. If the source of pieces panics, the stream ends with an error for
/// its reader.
pub fn pump(
    streams: Arc<Streams>,
    key: CallKey,
    peer: Peer,
    window: Arc<Window>,
    pieces: Pieces,
) -> impl Future<Output = ()> + Send {
    // Made outside of the future, so that the table forgets the stream even if the future is
    // dropped before its first poll.
    let forgets = Forgets { streams, key, peer };
    async move {
        let peer = &forgets.peer;
        // If the future is dropped in the middle, `ends` tells the reader that the stream was cut off.
        let mut ends = Ends { peer, key, armed: true };
        // A panic becomes an error behind the pieces that came before.
        let pieces = AssertUnwindSafe(pieces).catch_unwind();
        let pieces = pieces.map(|piece| piece.unwrap_or_else(|panic| Err(panicked(&*panic))));
        let how = send_all(key, peer, &window, pieces).await;
        ends.armed = false;
        let sent = match how {
            Ok(()) => end(peer, key, None).await,
            Err(Some(status)) => end(peer, key, Some(&status)).await,
            Err(None) => return,
        };
        if let Err(why) = sent {
            tracing::debug!(%why, "the end of a stream was not sent");
        }
    }
}

/// The status for the reader of a stream whose source has panicked.
#[cold]
fn panicked(panic: &(dyn Any + Send)) -> Status {
    tracing::error!(text = panic_text(panic), "a stream panicked");
    Status::internal("the stream panicked where its messages are made")
}

/// Sends all pieces of a stream. Pieces that are ready at the same time share messages.
///
/// # Errors
/// `Some` with the error that the stream has ended with, or `None` if the reader wants no more.
async fn send_all(
    key: CallKey,
    peer: &Peer,
    window: &Window,
    mut pieces: impl Stream<Item = Result<Bytes, Status>> + Unpin,
) -> Result<(), Option<Status>> {
    let most = peer.longest_payload();
    let (mut ahead, mut several) = (Poll::Pending, Vec::new());
    loop {
        let next = match std::mem::replace(&mut ahead, Poll::Pending) {
            Poll::Ready(next) => next,
            Poll::Pending => tokio::select! {
                biased;
                next = pieces.next() => next,
                // A reader that wants no more is noticed even while there is nothing to send.
                () = window.closed() => return Err(None),
            },
        };
        let piece = match next {
            None => return Ok(()),
            Some(Err(status)) => return Err(Some(status)),
            Some(Ok(piece)) => piece,
        };
        if piece.len() > most {
            send_in_fragments(key, peer, window, piece).await?;
            continue;
        }
        window.take(piece.len() + OVERHEAD).await.map_err(|Closed| None)?;
        several.clear();
        let mut count = 0;
        if piece::put(&piece, most, &mut several) {
            (count, ahead) = gather(&mut pieces, window, most, &mut several).await;
        }
        match count {
            0 => send(key, peer, PieceKind::Last, &piece).await?,
            _ => send(key, peer, PieceKind::Several, &several).await?,
        }
    }
}

/// Appends pieces that are ready already to the first piece of a message, as long as the message
/// and the window have room. Returns how many were appended, and what the stream had next, which
/// was not appended.
async fn gather(
    pieces: &mut (impl Stream<Item = Result<Bytes, Status>> + Unpin),
    window: &Window,
    most: usize,
    several: &mut Vec<u8>,
) -> (usize, Poll<Option<Result<Bytes, Status>>>) {
    let room = window.left();
    let (mut count, mut taken) = (0, 0);
    let ahead = poll_fn(|context| {
        while taken + OVERHEAD <= room {
            match pieces.poll_next_unpin(context) {
                Poll::Pending => break,
                Poll::Ready(Some(Ok(piece)))
                    if taken + piece.len() + OVERHEAD <= room
                        && piece::put(&piece, most, several) =>
                {
                    taken += piece.len() + OVERHEAD;
                    count += 1;
                }
                other @ Poll::Ready(_) => return Poll::Ready(other),
            }
        }
        Poll::Ready(Poll::Pending)
    })
    .await;
    window.take_left(taken);
    (count, ahead)
}

/// Sends a piece that is longer than a message, in fragments.
async fn send_in_fragments(
    key: CallKey,
    peer: &Peer,
    window: &Window,
    mut piece: Bytes,
) -> Result<(), Option<Status>> {
    let len = piece.len();
    while !piece.is_empty() {
        let fragment = piece.split_to(peer.part_of(piece.len(), 3));
        let kind = if piece.is_empty() { PieceKind::Last } else { PieceKind::More(len) };
        window.take(fragment.len() + OVERHEAD).await.map_err(|Closed| None)?;
        send(key, peer, kind, &fragment).await?;
    }
    Ok(())
}

/// Sends a message about pieces.
///
/// # Errors
/// `None`, when the peer has gone.
async fn send(
    (session, call): CallKey,
    peer: &Peer,
    kind: PieceKind,
    payload: &[u8],
) -> Result<(), Option<Status>> {
    let credit = peer.credit().await.map_err(|_| None)?;
    credit.request_with(PIECE, [session, call, kind.word()], payload).map_err(|_| None)
}

/// The longest status message that is sent to a reader, in bytes. Longer messages are cut off.
const LONGEST_MESSAGE: usize = 1024;

async fn end(
    peer: &Peer,
    (session, call): CallKey,
    status: Option<&Status>,
) -> Result<(), SendError> {
    let (code, message) = match status {
        None => (crate::Code::Ok, ""),
        Some(status) => (status.error_code(), status.message()),
    };
    let message = &message.as_bytes()[..message.floor_char_boundary(LONGEST_MESSAGE)];
    let words = [session, call, PieceKind::End(code).word()];
    peer.credit().await?.request_with(PIECE, words, message)
}

/// Forgets the outgoing direction of a call when dropped, which is when its pump ends.
struct Forgets {
    streams: Arc<Streams>,
    key: CallKey,
    peer: Peer,
}

impl Drop for Forgets {
    fn drop(&mut self) {
        self.streams.close_outgoing(self.key, &self.peer);
    }
}

/// Tells the reader that the stream ends in the middle, if dropped while armed.
struct Ends<'p> {
    peer: &'p Peer,
    key: CallKey,
    armed: bool,
}

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        if self.armed {
            let (peer, key) = (self.peer.clone(), self.key);
            self.peer.runtime().spawn(async move {
                let status = Status::cancelled("the sender of the stream was stopped");
                let _ = end(&peer, key, Some(&status)).await;
            });
        }
    }
}
