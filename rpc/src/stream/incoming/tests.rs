//! Tests of the reading end of a stream. The test plays the sender.

use std::time::Duration;

use futures_util::task::noop_waker_ref;
use futures_util::{FutureExt, StreamExt};

use super::*;
use crate::Code;
use crate::bulk::Pool;

/// How long pieces wait while no memory comes back.
const PATIENCE: Duration = Duration::from_secs(10);
/// The length of most fragments, in bytes.
const FRAGMENT: usize = 1000;
/// How much of the window such a fragment costs.
const COST: usize = FRAGMENT + OVERHEAD;

/// The length of a long piece, in whole fragments.
const FRAGMENTS: usize = 4 * WINDOW / FRAGMENT;
/// The length of a long piece, in bytes.
const LEN: usize = FRAGMENTS * FRAGMENT;

/// The sender of a stream, with its window, the memory that the reader has asked for, and whether
/// the reader has told it to stop.
#[derive(Clone, Default)]
struct Sender(Arc<Mutex<(usize, Option<MemoryRequest>, bool)>>);

impl Sender {
    fn new() -> Self {
        let sender = Self::default();
        sender.grant(WINDOW);
        sender
    }

    fn window(&self) -> usize {
        self.0.lock().expect("nobody panics").0
    }

    fn is_stopped(&self) -> bool {
        self.0.lock().expect("nobody panics").2
    }

    fn wanted(&self) -> Option<MemoryRequest> {
        self.0.lock().expect("nobody panics").1.take()
    }

    /// Sends fragments of a piece of `len` bytes until `count` are sent, or the window has no room.
    /// Returns how many were sent.
    fn send(&self, incoming: &Arc<Incoming>, most: usize, len: usize) -> usize {
        let mut sent = 0;
        while sent < most && self.window() >= COST {
            self.0.lock().expect("nobody panics").0 -= COST;
            let came = incoming.put_fragment(&[1; FRAGMENT], len).expect("there is room");
            self.grant(came.grant);
            came.wanted.into_iter().for_each(|wanted| self.wants(incoming, wanted));
            sent += 1;
        }
        sent
    }

    /// Sends the last fragment of a piece.
    fn send_last(&self, incoming: &Incoming) {
        self.0.lock().expect("nobody panics").0 -= COST;
        let last = incoming.put_piece(Bytes::from_static(&[2; FRAGMENT])).expect("there is room");
        self.grant(last.grant);
    }
}

impl Feedback for Sender {
    fn grant(&self, part: usize) {
        self.0.lock().expect("nobody panics").0 += part;
    }

    fn wants(&self, _: &Arc<Incoming>, wanted: MemoryRequest) {
        self.0.lock().expect("nobody panics").1 = Some(wanted);
    }

    fn leave(&self, ended: bool) {
        self.0.lock().expect("nobody panics").2 = !ended;
    }
}

fn incoming(share: &Share) -> Arc<Incoming> {
    Arc::new(Incoming::new(LEN, share.clone()))
}

fn some_share() -> Share {
    Pool::new(LEN, PATIENCE).whole()
}

/// The next piece or the end of a stream, if the reader has it at once.
fn read(reader: &mut Reader<Sender>) -> Poll<Option<Result<Bytes, Status>>> {
    reader.poll_next_unpin(&mut Context::from_waker(noop_waker_ref()))
}

#[test]
fn a_sender_that_exceeds_the_window_ends_the_stream_with_an_error() {
    let incoming = incoming(&some_share());
    let piece = Bytes::from_static(&[7; FRAGMENT]);
    let fit = WINDOW / COST;
    for _ in 0..fit {
        incoming.put_piece(piece.clone()).expect("the window has room");
    }
    let refused = incoming.put_piece(piece).expect_err("the window is used up");
    assert_eq!(refused.code(), Code::ResourceExhausted);
    let mut reader = Reader::new(incoming, Sender::new());
    for _ in 0..fit {
        assert!(matches!(read(&mut reader), Poll::Ready(Some(Ok(_)))));
    }
    assert!(matches!(read(&mut reader), Poll::Ready(Some(Err(_)))));
    assert!(matches!(read(&mut reader), Poll::Ready(None)));
}

#[tokio::test]
async fn a_long_piece_comes_beyond_the_window_once_it_has_memory() {
    let (incoming, sender) = (incoming(&some_share()), Sender::new());
    let before = sender.send(&incoming, FRAGMENTS, LEN);
    assert!(before <= WINDOW / COST, "{before} fragments came without memory");
    let wanted = sender.wanted().expect("the piece is longer than the window");
    assert_eq!(wanted.len, LEN);
    let reserves = incoming.reserve(wanted, &sender);
    let mut reserves = std::pin::pin!(reserves);
    assert!(reserves.as_mut().now_or_never().is_none(), "the piece is not whole");
    assert_eq!(sender.send(&incoming, FRAGMENTS - 1 - before, LEN), FRAGMENTS - 1 - before);
    sender.send_last(&incoming);
    reserves.await;
    let mut reader = Reader::new(incoming.clone(), sender.clone());
    match read(&mut reader) {
        Poll::Ready(Some(Ok(piece))) => assert_eq!((piece.len(), piece.last()), (LEN, Some(&2))),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_piece_that_fits_the_window_needs_no_memory() {
    let (incoming, sender) = (incoming(&some_share()), Sender::new());
    let mut reader = Reader::new(incoming.clone(), sender.clone());
    for _ in 0..50 {
        assert_eq!(sender.send(&incoming, 59, 60 * FRAGMENT), 59);
        sender.send_last(&incoming);
        assert!(sender.wanted().is_none());
        assert!(matches!(read(&mut reader), Poll::Ready(Some(Ok(_)))));
    }
}

#[tokio::test]
async fn a_long_piece_behind_another_that_is_not_read_has_only_the_window() {
    let (incoming, sender) = (incoming(&some_share()), Sender::new());
    incoming.put_piece(Bytes::from_static(&[0; FRAGMENT])).expect("there is room");
    let behind = sender.send(&incoming, WINDOW / COST - 1, LEN);
    assert!(sender.wanted().is_none(), "the piece before was not read");
    let mut reader = Reader::new(incoming.clone(), sender.clone());
    assert!(matches!(read(&mut reader), Poll::Ready(Some(Ok(_)))));
    let wanted = sender.wanted().expect("the piece is the next one");
    let reserves = incoming.reserve(wanted, &sender);
    let mut reserves = std::pin::pin!(reserves);
    assert!(reserves.as_mut().now_or_never().is_none(), "the piece is not whole");
    assert_eq!(sender.send(&incoming, FRAGMENTS - 1 - behind, LEN), FRAGMENTS - 1 - behind);
}

#[tokio::test]
async fn long_pieces_of_several_streams_wait_for_each_other() {
    let share = some_share();
    let ([one, other], [sends, waits]) =
        ([incoming(&share), incoming(&share)], [Sender::new(), Sender::new()]);
    let before = sends.send(&one, FRAGMENTS, LEN);
    let mut first = Box::pin(one.reserve(sends.wanted().expect("it is long"), &sends));
    assert!(first.as_mut().now_or_never().is_none());
    let came = waits.send(&other, FRAGMENTS, LEN);
    let mut second = Box::pin(other.reserve(waits.wanted().expect("it is long"), &waits));
    assert!(second.as_mut().now_or_never().is_none());
    assert_eq!(waits.send(&other, 1, LEN), 0, "the memory is taken");
    sends.send(&one, FRAGMENTS - 1 - before, LEN);
    sends.send_last(&one);
    first.await;
    assert!(second.as_mut().now_or_never().is_none(), "the first piece was not read");
    let mut reader = Reader::new(one.clone(), sends.clone());
    assert!(matches!(read(&mut reader), Poll::Ready(Some(Ok(_)))));
    assert!(second.as_mut().now_or_never().is_none(), "the second piece is not whole");
    assert_eq!(waits.send(&other, FRAGMENTS - 1 - came, LEN), FRAGMENTS - 1 - came);
}

#[tokio::test(start_paused = true)]
async fn a_sender_that_stops_in_the_midst_of_a_long_piece_ends_the_stream() {
    let pool = Pool::new(LEN, PATIENCE);
    let (incoming, sender) = (incoming(&pool.whole()), Sender::new());
    let mut reader = Reader::new(incoming.clone(), sender.clone());
    sender.send(&incoming, FRAGMENTS, LEN);
    incoming.reserve(sender.wanted().expect("the piece is long"), &sender).await;
    match read(&mut reader) {
        Poll::Ready(Some(Err(status))) => assert_eq!(status.code(), Code::Unavailable, "{status}"),
        other => panic!("{other:?}"),
    }
    assert_eq!(pool.used(), 0);
    drop(reader);
    assert!(sender.is_stopped(), "the sender may go on when it is there again");
}

#[tokio::test]
async fn memory_is_given_to_the_piece_alone_that_has_asked_for_it() {
    let pool = Pool::new(LEN, PATIENCE);
    let share = pool.whole();
    let (incoming, sender) = (incoming(&share), Sender::new());
    let taken = share.reserve(LEN).await.expect("there is room");
    let mut reader = Reader::new(incoming.clone(), sender.clone());
    // A piece that asks for memory, and is completed within the window meanwhile.
    let short = 100 * FRAGMENT;
    assert_eq!(sender.send(&incoming, 99, short), 99);
    let asked = sender.wanted().expect("it is longer than a quarter of the window");
    let mut reserves = Box::pin(incoming.reserve(asked, &sender));
    assert!(reserves.as_mut().now_or_never().is_none(), "the memory is taken");
    sender.send_last(&incoming);
    assert!(matches!(read(&mut reader), Poll::Ready(Some(Ok(_)))));
    let behind = sender.send(&incoming, FRAGMENTS, LEN);
    drop(taken);
    reserves.await;
    assert_eq!(pool.used(), 0, "the piece behind has not reserved its own memory");
    assert_eq!(sender.send(&incoming, FRAGMENTS - behind, LEN), 0);
}

#[test]
fn a_stream_that_ends_well_in_the_midst_of_a_piece_ends_with_an_error() {
    let (incoming, sender) = (incoming(&some_share()), Sender::new());
    sender.send(&incoming, 1, LEN);
    incoming.end(Ok(()));
    let mut reader = Reader::new(incoming, sender.clone());
    match read(&mut reader) {
        Poll::Ready(Some(Err(status))) => assert_eq!(status.code(), Code::Internal, "{status}"),
        other => panic!("{other:?}"),
    }
    drop(reader);
    assert!(!sender.is_stopped(), "the sender has ended the stream itself");
}

#[tokio::test]
async fn a_reader_that_leaves_gives_the_memory_back() {
    let pool = Pool::new(LEN, PATIENCE);
    let (incoming, sender) = (incoming(&pool.whole()), Sender::new());
    let reader = Reader::new(incoming.clone(), sender.clone());
    let before = sender.send(&incoming, FRAGMENTS, LEN);
    let mut reserves = Box::pin(incoming.reserve(sender.wanted().expect("it is long"), &sender));
    assert!(reserves.as_mut().now_or_never().is_none());
    sender.send(&incoming, FRAGMENTS - 1 - before, LEN);
    sender.send_last(&incoming);
    assert_ne!(pool.used(), 0);
    drop(reader);
    assert_eq!(pool.used(), 0);
    let late = incoming.put_piece(Bytes::from_static(b"late")).expect("it is passed over");
    assert!(!late.woke);
}

#[test]
fn several_pieces_are_read_one_by_one_and_bytes_that_are_none_end_the_stream() {
    let incoming = incoming(&some_share());
    let mut several = Vec::new();
    assert!(piece::put(b"a", 100, &mut several) && piece::put(b"", 100, &mut several));
    incoming.put_several(several.clone().into()).expect("two pieces");
    several.push(0);
    assert!(incoming.put_several(several.into()).is_err());
    let reader = Reader::new(incoming, Sender::new());
    let read: Vec<_> = reader.map(Result::ok).collect().now_or_never().expect("it is there");
    let [a, none] = [Bytes::from_static(b"a"), Bytes::new()].map(Some);
    assert_eq!(read, [a.clone(), none.clone(), a, none, None]);
}

/// The status with which a stream ends after something was put in that is refused.
fn ends_with(put: impl Fn(&Incoming) -> Result<Effects, Status>) -> Status {
    let incoming = incoming(&some_share());
    let refused = put(&incoming).expect_err("it is refused");
    let mut reader = Reader::new(incoming, Sender::new());
    match read(&mut reader) {
        Poll::Ready(Some(Err(status))) => assert_eq!(status.to_string(), refused.to_string()),
        other => panic!("{other:?}"),
    }
    refused
}

#[test]
fn pieces_of_other_lengths_than_announced_and_too_long_ones_end_the_stream() {
    let fragment = [1; FRAGMENT];
    let last = || Bytes::from_static(&[2; FRAGMENT]);
    let refused = ends_with(|incoming| incoming.put_fragment(&fragment, LEN + 1));
    assert_eq!(refused.code(), Code::ResourceExhausted);
    assert!(refused.message().contains(&LEN.to_string()), "{refused}");
    let refused = [
        ends_with(|incoming| incoming.put_fragment(&fragment, FRAGMENT - 1)),
        ends_with(|incoming| {
            incoming.put_fragment(&fragment, 3 * FRAGMENT)?;
            incoming.put_fragment(&fragment, 4 * FRAGMENT)
        }),
        ends_with(|incoming| {
            incoming.put_fragment(&fragment, 3 * FRAGMENT)?;
            incoming.put_piece(last())
        }),
        ends_with(|incoming| {
            incoming.put_fragment(&fragment, FRAGMENT + 1)?;
            incoming.put_piece(last())
        }),
    ];
    assert!(refused.iter().all(|status| status.code() == Code::Internal), "{refused:?}");
}
