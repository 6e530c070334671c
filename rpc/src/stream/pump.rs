//! Sending a stream.

use std::sync::Arc;

use bytes::Bytes;
use doorbell_am::{Peer, SendError};
use futures_util::StreamExt;

use super::OVERHEAD;
use super::table::{Key, Streams};
use super::window::Window;
use crate::message::Pieces;
use crate::status::Status;
use crate::wire::{PIECE, PieceKind};

/// Sends a stream to its end, or until the reader wants no more or has gone. Pieces are fetched
/// only when there is room for them.
pub async fn pump(
    streams: Arc<Streams>,
    key: Key,
    peer: Peer,
    window: Arc<Window>,
    pieces: Pieces,
) {
    let _forgets = Forgets { streams: &streams, key, peer: &peer };
    // Whoever drops this sender in the middle leaves a stream without an end.
    let mut ends = Ends { peer: &peer, key, armed: true };
    let how = send_all(key, &peer, &window, pieces).await;
    ends.armed = false;
    let sent = match how {
        Ok(()) => end(&peer, key, None).await,
        Err(Some(status)) => end(&peer, key, Some(&status)).await,
        Err(None) => return,
    };
    if let Err(why) = sent {
        tracing::debug!(%why, "the end of a stream was not sent");
    }
}

/// Sends all pieces.
///
/// # Errors
/// What the stream has ended with, or nothing if the reader wants no more.
async fn send_all(
    key: Key,
    peer: &Peer,
    window: &Window,
    mut pieces: Pieces,
) -> Result<(), Option<Status>> {
    loop {
        // A reader that wants no more is noticed while the stream has nothing to send, too.
        let piece = tokio::select! {
            biased;
            piece = pieces.next() => piece,
            () = window.closed() => return Err(None),
        };
        match piece {
            None => return Ok(()),
            Some(Err(status)) => return Err(Some(status)),
            Some(Ok(piece)) => send(key, peer, window, piece).await?,
        }
    }
}

/// Sends a piece in as many fragments as it takes.
async fn send(
    key: Key,
    peer: &Peer,
    window: &Window,
    mut piece: Bytes,
) -> Result<(), Option<Status>> {
    let most = peer.longest_payload();
    let (session, call) = key;
    loop {
        let fragment = piece.split_to(piece.len().min(most));
        let kind = if piece.is_empty() { PieceKind::Last } else { PieceKind::More };
        window.take(fragment.len() + OVERHEAD).await.map_err(|_| None)?;
        let credit = peer.credit().await.map_err(|_| None)?;
        let sent = credit.request_with(PIECE, [session, call, kind.word()], &fragment);
        sent.map_err(|_| None)?;
        if piece.is_empty() {
            return Ok(());
        }
    }
}

/// The most bytes of a status's message that travel.
const LONGEST_MESSAGE: usize = 1024;

async fn end(peer: &Peer, (session, call): Key, status: Option<&Status>) -> Result<(), SendError> {
    let (code, message) = match status {
        None => (crate::Code::Ok, ""),
        Some(status) => (status.code(), status.message()),
    };
    let message = &message.as_bytes()[..message.floor_char_boundary(LONGEST_MESSAGE)];
    let words = [session, call, PieceKind::End(code).word()];
    peer.credit().await?.request_with(PIECE, words, message)
}

/// Forgets the outgoing direction when its sender ends, however that comes.
struct Forgets<'s> {
    streams: &'s Streams,
    key: Key,
    peer: &'s Peer,
}

impl Drop for Forgets<'_> {
    fn drop(&mut self) {
        self.streams.close_outgoing(self.key, self.peer);
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
