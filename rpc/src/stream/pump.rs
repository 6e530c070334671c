//! Sending a stream.

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
use super::table::{Key, Streams};
use super::window::{Closed, Window};
use crate::message::Pieces;
use crate::status::{Status, panic_text};
use crate::wire::{PIECE, PieceKind, piece};

/// Sends a stream to its end, or until the reader wants no more or has gone. Pieces are fetched
/// only when there is room for them. A stream that panics ends with an error for its reader.
pub fn pump(
    streams: Arc<Streams>,
    key: Key,
    peer: Peer,
    window: Arc<Window>,
    pieces: Pieces,
) -> impl Future<Output = ()> + Send {
    // Made here, so that a task that is dropped before it runs forgets the stream, too.
    let forgets = Forgets { streams, key, peer };
    async move {
        let peer = &forgets.peer;
        // Whoever drops this sender in the middle leaves a stream without an end.
        let mut ends = Ends { peer, key, armed: true };
        // A panic is an error behind the pieces that came before.
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

/// The status for the reader of a stream that has panicked.
#[cold]
fn panicked(panic: &(dyn Any + Send)) -> Status {
    tracing::error!(text = panic_text(panic), "a stream panicked");
    Status::internal("the stream panicked where its messages are made")
}

/// Sends all pieces: those that are there at the same time share messages.
///
/// # Errors
/// What the stream has ended with, or nothing if the reader wants no more.
async fn send_all(
    key: Key,
    peer: &Peer,
    window: &Window,
    mut pieces: impl Stream<Item = Result<Bytes, Status>> + Unpin,
) -> Result<(), Option<Status>> {
    let most = peer.longest_payload();
    let (mut ahead, mut several) = (None, Vec::new());
    loop {
        let next = match ahead.take() {
            Some(next) => next,
            None => tokio::select! {
                biased;
                next = pieces.next() => next,
                // That the reader wants no more is noticed while there is nothing to send, too.
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

/// Puts pieces that are there already behind a first one, as long as they fit a message and the
/// window has room. Returns how many those are, and what the stream gave last if that was not put
/// there.
async fn gather(
    pieces: &mut (impl Stream<Item = Result<Bytes, Status>> + Unpin),
    window: &Window,
    most: usize,
    several: &mut Vec<u8>,
) -> (usize, Option<Option<Result<Bytes, Status>>>) {
    let room = window.left();
    let (mut count, mut taken) = (0, 0);
    let ahead = poll_fn(|context| {
        while taken + OVERHEAD <= room {
            match pieces.poll_next_unpin(context) {
                Poll::Pending => return Poll::Ready(None),
                Poll::Ready(Some(Ok(piece)))
                    if taken + piece.len() + OVERHEAD <= room
                        && piece::put(&piece, most, several) =>
                {
                    taken += piece.len() + OVERHEAD;
                    count += 1;
                }
                Poll::Ready(other) => return Poll::Ready(Some(other)),
            }
        }
        Poll::Ready(None)
    })
    .await;
    window.take_left(taken);
    (count, ahead)
}

/// Sends a piece that is longer than a message.
async fn send_in_fragments(
    key: Key,
    peer: &Peer,
    window: &Window,
    mut piece: Bytes,
) -> Result<(), Option<Status>> {
    let len = piece.len();
    while !piece.is_empty() {
        let fragment = piece.split_to(piece.len().min(peer.longest_payload()));
        let kind = if piece.is_empty() { PieceKind::Last } else { PieceKind::More(len) };
        window.take(fragment.len() + OVERHEAD).await.map_err(|Closed| None)?;
        send(key, peer, kind, &fragment).await?;
    }
    Ok(())
}

/// Sends a message about pieces.
///
/// # Errors
/// Nothing, when the peer has gone.
async fn send(
    (session, call): Key,
    peer: &Peer,
    kind: PieceKind,
    payload: &[u8],
) -> Result<(), Option<Status>> {
    let credit = peer.credit().await.map_err(|_| None)?;
    credit.request_with(PIECE, [session, call, kind.word()], payload).map_err(|_| None)
}

/// The most bytes of a status's message that travel.
const LONGEST_MESSAGE: usize = 1024;

async fn end(peer: &Peer, (session, call): Key, status: Option<&Status>) -> Result<(), SendError> {
    let (code, message) = match status {
        None => (crate::Code::Ok, ""),
        Some(status) => (status.error_code(), status.message()),
    };
    let message = &message.as_bytes()[..message.floor_char_boundary(LONGEST_MESSAGE)];
    let words = [session, call, PieceKind::End(code).word()];
    peer.credit().await?.request_with(PIECE, words, message)
}

/// Forgets the outgoing direction when its sender ends, however that comes.
struct Forgets {
    streams: Arc<Streams>,
    key: Key,
    peer: Peer,
}

impl Drop for Forgets {
    fn drop(&mut self) {
        self.streams.close_outgoing(self.key, &self.peer);
    }
}

/// Tells the reader that the stream ends in the middle, if its sender is dropped.
struct Ends<'p> {
    peer: &'p Peer,
    key: Key,
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
