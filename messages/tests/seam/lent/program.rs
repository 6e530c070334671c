//! Programs of tagged messages: sends and receives that are joined, raced, cancelled and dropped.

use std::collections::HashMap;

use bytes::{Bytes, BytesMut};
use doorbell_messages::{
    Endpoint, Match, Message, Peer, ReceiveError, Received, Receiving, RegionPart, SendError,
    Sending,
};
use doorbell_verbs::Region;
use proptest::collection::vec;
use proptest::prelude::*;

use crate::ends::{Ends, body};

/// The lengths of bodies: of one packet, of several, and longer than is sent at once.
const LENGTHS: [usize; 8] = [0, 1, 112, 113, 5000, 40_000, 100_000, 300_000];

/// A step of a program. What waits is named by its place among all that has been posted.
#[derive(Clone, Debug)]
pub enum Step {
    Send {
        from: usize,
        bits: u64,
        len: usize,
        synchronously: bool,
    },
    Receive {
        at: usize,
        bits: Option<u64>,
        room: usize,
    },
    ReceiveInto {
        at: usize,
        bits: Option<u64>,
        pieces: Vec<usize>,
    },
    /// Receives into parts of a region: so many bytes are left out, and so many are a part.
    ReceiveInParts {
        at: usize,
        bits: Option<u64>,
        parts: Vec<(usize, usize)>,
    },
    /// Waits for two, each for so many turns.
    Join(usize, usize, u32),
    /// Waits for the first of two, for so many turns, and drops the other if there was one.
    Select(usize, usize, u32),
    Cancel(usize),
    Test(usize),
    Drop(usize),
}

/// Draws the steps of a program.
pub fn steps() -> impl Strategy<Value = Vec<Step>> {
    let len = || (0..LENGTHS.len()).prop_map(|at| LENGTHS[at]);
    let (bits, of) = (|| 0..4_u64, || proptest::option::weighted(0.8, 0..4_u64));
    let (at, turns) = (|| 0..40_usize, || 0..60_u32);
    let step = prop_oneof![
        5 => (0..2_usize, bits(), len(), any::<bool>()).prop_map(|(from, bits, len, synchronously)| {
            Step::Send { from, bits, len, synchronously }
        }),
        3 => (0..2_usize, of(), len())
            .prop_map(|(at, bits, room)| Step::Receive { at, bits, room }),
        3 => (0..2_usize, of(), vec(1..150_000_usize, 1..4))
            .prop_map(|(at, bits, pieces)| Step::ReceiveInto { at, bits, pieces }),
        3 => (0..2_usize, of(), vec((0..9_usize, 1..150_000_usize), 1..4))
            .prop_map(|(at, bits, parts)| Step::ReceiveInParts { at, bits, parts }),
        2 => (at(), at(), turns()).prop_map(|(a, b, turns)| Step::Join(a, b, turns)),
        2 => (at(), at(), turns()).prop_map(|(a, b, turns)| Step::Select(a, b, turns)),
        1 => at().prop_map(Step::Cancel),
        1 => at().prop_map(Step::Test),
        1 => at().prop_map(Step::Drop),
    ];
    vec(step, 1..50)
}

/// Lets so many turns pass in which others run.
async fn turns(count: u32) {
    for _ in 0..count {
        tokio::task::yield_now().await;
    }
}

/// A request that was posted.
enum Request {
    Send(Sending, u64),
    Receive(Receiving),
    Pieces(Receiving<Vec<BytesMut>>),
    Parts(Receiving<Vec<RegionPart>>),
}

/// The end of a request.
enum End {
    Sent(u64, Result<(), SendError>),
    Received(Result<(u64, Kept), ReceiveError>),
}

/// A body that was received, wherever it is.
enum Kept {
    Whole(Bytes),
    Pieces(Vec<BytesMut>),
    Parts(Vec<RegionPart>, usize),
}

impl Kept {
    fn bytes(&self) -> Vec<u8> {
        match self {
            Self::Whole(whole) => whole.to_vec(),
            Self::Pieces(pieces) => pieces.concat(),
            Self::Parts(parts, len) => {
                let read = |part: &RegionPart| {
                    let mut bytes = vec![0; part.len()];
                    part.region().read_at(part.begin(), &mut bytes).expect("it is within");
                    bytes
                };
                let mut bytes: Vec<_> = parts.iter().flat_map(read).collect();
                bytes.truncate(*len);
                bytes
            }
        }
    }
}

fn whole(end: Result<Message, ReceiveError>) -> End {
    End::Received(end.map(|Message { bits, body, .. }| (bits, Kept::Whole(body))))
}

fn pieces(end: Result<Received<Vec<BytesMut>>, ReceiveError>) -> End {
    End::Received(end.map(|Received { bits, len, into, .. }| {
        assert_eq!(into.iter().map(BytesMut::len).sum::<usize>(), len);
        (bits, Kept::Pieces(into))
    }))
}

fn parts(end: Result<Received<Vec<RegionPart>>, ReceiveError>) -> End {
    End::Received(end.map(|Received { bits, len, into, .. }| (bits, Kept::Parts(into, len))))
}

impl Request {
    /// Waits for the request's end, for so many turns.
    async fn within(&mut self, count: u32) -> Option<End> {
        tokio::select! {
            biased;
            end = async {
                match self {
                    Self::Send(sending, number) => End::Sent(*number, sending.await),
                    Self::Receive(receiving) => whole(receiving.await),
                    Self::Pieces(receiving) => pieces(receiving.await),
                    Self::Parts(receiving) => parts(receiving.await),
                }
            } => Some(end),
            () = turns(count) => None,
        }
    }

    fn test(&mut self) -> Option<End> {
        match self {
            Self::Send(sending, number) => sending.test().map(|end| End::Sent(*number, end)),
            Self::Receive(receiving) => receiving.test().map(whole),
            Self::Pieces(receiving) => receiving.test().map(pieces),
            Self::Parts(receiving) => receiving.test().map(parts),
        }
    }

    fn cancel(&mut self) -> bool {
        match self {
            Self::Send(sending, _) => sending.cancel(),
            Self::Receive(receiving) => receiving.cancel(),
            Self::Pieces(receiving) => receiving.cancel(),
            Self::Parts(receiving) => receiving.cancel(),
        }
    }
}

/// A message that the program holds, and which one it should be.
struct Held {
    number: u64,
    kept: Kept,
}

/// A record of the messages that a program has sent, received and cancelled, with those it holds.
#[derive(Default)]
struct Record {
    /// The lengths of all messages that were sent, by their numbers.
    sent: HashMap<u64, (u64, usize)>,
    /// Bodies that were sent, which the program holds, too.
    lent: Vec<(u64, Bytes)>,
    held: Vec<Held>,
    cancelled: usize,
    truncated: usize,
}

impl Record {
    /// Makes the body of the next message.
    fn next(&mut self, bits: u64, len: usize) -> (u64, Bytes) {
        let number = self.sent.len() as u64;
        self.sent.insert(number, (bits, len));
        let bytes = body(number, len);
        self.lent.push((number, bytes.clone()));
        (number, bytes)
    }

    /// Notes the end of a request.
    fn ends(&mut self, end: End) {
        match end {
            End::Sent(_, Ok(())) => {}
            End::Sent(number, Err(SendError::Cancelled)) => {
                self.cancelled += 1;
                assert!(self.held.iter().all(|held| held.number != number), "it was cancelled");
            }
            End::Sent(number, Err(why)) => panic!("message {number}: {why}"),
            End::Received(Err(ReceiveError::Truncated { bits, len, room })) => {
                assert!(len > room && self.sent.values().any(|sent| *sent == (bits, len)));
                self.truncated += 1;
            }
            End::Received(Err(ReceiveError::Cancelled)) => {}
            End::Received(Err(why)) => panic!("{why}"),
            End::Received(Ok((bits, kept))) => self.holds(bits, kept),
        }
    }

    /// Finds out which message has come, and holds it.
    fn holds(&mut self, bits: u64, kept: Kept) {
        let bytes = kept.bytes();
        let len = bytes.len();
        let is_it = |number: &u64| {
            self.held.iter().all(|held| held.number != *number)
                && self.sent[number] == (bits, len)
                && body(*number, len) == bytes
        };
        let number = self.sent.keys().copied().filter(is_it).min();
        let number = number.unwrap_or_else(|| panic!("no such message of {len} bytes was sent"));
        self.held.push(Held { number, kept });
    }

    /// Checks that nothing has changed that the program holds.
    fn is_unchanged(&self) {
        for Held { number, kept } in &self.held {
            let expected = body(*number, self.sent[number].1);
            assert!(kept.bytes() == expected, "message {number} has changed while it was held");
        }
        for (number, bytes) in &self.lent {
            assert!(*bytes == body(*number, bytes.len()), "what was sent as {number} has changed");
        }
    }
}

/// Plays a program, and has all of it end.
pub async fn plays(ends: Ends, steps: Vec<Step>) {
    let pair = ends.pair(64 << 10).await;
    let back = pair.far.connect(pair.near.name()).await.expect("the other endpoint is there");
    let (endpoints, peers) = ([&pair.near, &pair.far], [&pair.peer, &back]);
    let (mut posted, mut record): (Vec<Option<Request>>, _) = (Vec::new(), Record::default());
    for step in steps {
        take(step, endpoints, peers, &mut posted, &mut record).await;
        record.is_unchanged();
    }
    finish(endpoints, posted, &mut record).await;
    record.is_unchanged();
    let all = record.held.len() + record.cancelled + record.truncated;
    assert_eq!(all, record.sent.len(), "each message was received, cancelled, or too long");
}

async fn take(
    step: Step,
    endpoints: [&Endpoint; 2],
    peers: [&Peer; 2],
    posted: &mut Vec<Option<Request>>,
    record: &mut Record,
) {
    let of = |bits: Option<u64>| bits.map_or(Match::any(), Match::exactly);
    match step {
        Step::Send { from, bits, len, synchronously } => {
            let (number, body) = record.next(bits, len);
            let send = match synchronously {
                true => peers[from].send_synchronously(bits, body),
                false => peers[from].send(bits, body),
            };
            posted.push(Some(Request::Send(send, number)));
        }
        Step::Receive { at, bits, room } => {
            posted.push(Some(Request::Receive(endpoints[at].receive_at_most(room, of(bits)))));
        }
        Step::ReceiveInto { at, bits, pieces } => {
            let pieces: Vec<_> = pieces.into_iter().map(BytesMut::with_capacity).collect();
            posted.push(Some(Request::Pieces(endpoints[at].receive_into(pieces, of(bits)))));
        }
        Step::ReceiveInParts { at, bits, parts } => {
            let region = Region::new(parts.iter().map(|(before, len)| before + len).sum());
            let mut begin = 0;
            let part = |(before, len): (usize, usize)| {
                begin += before + len;
                RegionPart::new(&region, begin - len..begin).expect("it is within")
            };
            let parts: Vec<_> = parts.into_iter().map(part).collect();
            posted.push(Some(Request::Parts(endpoints[at].receive_into(parts, of(bits)))));
        }
        Step::Join(a, b, count) => {
            let (mut one, mut other) = (taken(posted, a), taken(posted, b));
            let (first, second) = tokio::join!(within(&mut one, count), within(&mut other, count));
            for (at, request, end) in [(a, one, first), (b, other, second)] {
                settle(posted, record, at, request, end);
            }
        }
        Step::Select(a, b, count) => {
            let (mut one, mut other) = (taken(posted, a), taken(posted, b));
            let (first, second) = tokio::select! {
                end = within(&mut one, count), if one.is_some() => (end, None),
                end = within(&mut other, count), if other.is_some() => (None, end),
                else => (None, None),
            };
            let is_over = first.is_some() || second.is_some();
            for (at, request, end) in [(a, one, first), (b, other, second)] {
                match (is_over, &request, &end) {
                    // A send goes on without its future, and its end is not known then.
                    (true, Some(request), None) if !matches!(request, Request::Send(..)) => {}
                    _ => settle(posted, record, at, request, end),
                }
            }
        }
        Step::Cancel(at) => {
            if let Some(mut request) = taken(posted, at) {
                request.cancel();
                let end = request.test();
                settle(posted, record, at, Some(request), end);
            }
        }
        Step::Test(at) => {
            if let Some(mut request) = taken(posted, at) {
                let end = request.test();
                settle(posted, record, at, Some(request), end);
            }
        }
        Step::Drop(at) => match taken(posted, at) {
            request @ Some(Request::Send(..)) => settle(posted, record, at, request, None),
            request => drop(request),
        },
    }
}

fn taken(posted: &mut [Option<Request>], at: usize) -> Option<Request> {
    posted.get_mut(at)?.take()
}

async fn within(request: &mut Option<Request>, count: u32) -> Option<End> {
    request.as_mut()?.within(count).await
}

/// Notes the end of a request, or puts the request back.
fn settle(
    posted: &mut [Option<Request>],
    record: &mut Record,
    at: usize,
    request: Option<Request>,
    end: Option<End>,
) {
    match end {
        Some(end) => record.ends(end),
        None => {
            if let Some(place) = posted.get_mut(at) {
                *place = request;
            }
        }
    }
}

/// Receives what is left until all sends have ended and nothing comes any more.
async fn finish(endpoints: [&Endpoint; 2], posted: Vec<Option<Request>>, record: &mut Record) {
    let (mut sends, mut receives) = (Vec::new(), Vec::new());
    for request in posted.into_iter().flatten() {
        match request {
            Request::Send(sending, number) => sends.push((sending, number)),
            receive => receives.push(receive),
        }
    }
    for mut receive in receives {
        // A receive that can't be cancelled has met a message, and ends.
        receive.cancel();
        record.ends(match receive {
            Request::Receive(receiving) => whole(receiving.await),
            Request::Pieces(receiving) => pieces(receiving.await),
            Request::Parts(receiving) => parts(receiving.await),
            Request::Send(..) => unreachable!("sends stand apart"),
        });
    }
    let mut quiet = 0;
    while quiet < 3 {
        quiet += 1;
        for endpoint in endpoints {
            let mut rest = Request::Receive(endpoint.receive(Match::any()));
            if let Some(end) = rest.within(200).await {
                record.ends(end);
                quiet = 0;
            }
        }
        let mut left = Vec::new();
        for (mut sending, number) in sends {
            match sending.test() {
                Some(end) => record.ends(End::Sent(number, end)),
                None => left.push((sending, number)),
            }
        }
        sends = left;
        if !sends.is_empty() {
            quiet = 0;
        }
        record.is_unchanged();
    }
}
