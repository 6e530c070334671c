//! Random programs of several endpoints: each sends, receives, probes and cancels as a seed says,
//! and notes what it sees for the [model](crate::fabric::model).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use doorbell_kit::effort;
use doorbell_messages::{Endpoint, Match, Peer, ReceiveError, Receiving, Sending};
use doorbell_simulation::Luck;
use futures_util::future::join_all;
use tokio::sync::Barrier;

use crate::ends::{Ends, body, check};
use crate::fabric::model::{History, Pattern, Place, Step};

/// How many endpoints there are on each of the two NICs. Messages go from one NIC to the other.
const SIDE: usize = 2;
const PLAYERS: usize = 2 * SIDE;

/// A window that has room for all messages.
const WIDE: usize = 64 << 20;

/// The bits by which endpoints get to know each other.
const HELLO: u64 = u64::MAX;

/// The bits below the number of a message, which patterns compare.
const TAG: u64 = 0x7;

/// Time as all endpoints see it: how much has happened.
#[derive(Clone, Default)]
struct Clock(Arc<AtomicU64>);

impl Clock {
    fn next(&self) -> u64 {
        self.0.fetch_add(1, Ordering::SeqCst)
    }
}

/// What a program leaves behind.
#[derive(Default)]
struct Record {
    /// The bits of the messages to each other, in the order of sending.
    sent: [Vec<u64>; PLAYERS],
    steps: Vec<Step>,
    /// The times at which receives were posted, by the messages that they got.
    posted: Vec<(Place, u64)>,
    /// The times at which synchronous sends were seen to be done, with their receivers.
    done: Vec<(usize, usize, u64)>,
}

struct Player {
    number: usize,
    luck: Luck,
    clock: Clock,
    endpoint: Endpoint,
    /// The endpoints on the other side.
    peers: Vec<(usize, Peer)>,
    receives: Vec<Posted>,
    sends: Vec<Sent>,
    record: Record,
}

/// A receive that has no outcome yet.
struct Posted {
    step: usize,
    at: u64,
    room: usize,
    receive: Receiving,
}

/// A send that has no outcome yet.
struct Sent {
    to: usize,
    number: usize,
    is_synchronous: bool,
    send: Sending,
}

/// The bits of a message, which no other message has.
fn bits(sender: usize, number: usize, tag: u64) -> u64 {
    (sender as u64) << 48 | (number as u64) << 8 | tag
}

/// The message that has these bits.
fn place(bits: u64) -> Place {
    ((bits >> 48) as usize, (bits >> 8 & 0xFFFF_FFFF) as usize)
}

/// The length of a message, which follows from its bits.
fn len(bits: u64) -> usize {
    let mut luck = Luck::new(bits);
    let most = [1, 200, 5000, 50_000][luck.below(4) as usize];
    luck.below(most + 1) as usize
}

/// Plays the random program of a seed.
pub async fn play(ends: Ends, seed: u64) {
    let mut luck = Luck::stream(seed, PLAYERS as u32);
    let window = [4096, 5000, 9000, WIDE][luck.below(4) as usize];
    let credits = [1, 4, 256][luck.below(3) as usize];
    let builder = || {
        let builder = Endpoint::builder().window(window);
        builder.endpoint(|below| below.credits(credits).first_credits(credits.min(8)))
    };
    let mut endpoints = Vec::new();
    for number in 0..PLAYERS {
        endpoints.push(ends.open(number / SIDE, builder()).await);
    }
    let (clock, barrier) = (Clock::default(), Arc::new(Barrier::new(PLAYERS)));
    let all_sent = Arc::new([const { AtomicU64::new(0) }; PLAYERS]);
    let peers = acquaint(&endpoints).await;
    let players = (0..).zip(endpoints).zip(peers).map(|((number, endpoint), peers)| {
        let luck = Luck::stream(seed, number as u32);
        let player = Player {
            number,
            luck,
            clock: clock.clone(),
            endpoint,
            peers,
            receives: Vec::new(),
            sends: Vec::new(),
            record: Record::default(),
        };
        tokio::spawn(player.play(barrier.clone(), all_sent.clone()))
    });
    let players: Vec<_> = players.collect();
    let mut records = Vec::new();
    for player in players {
        records.push(player.await.expect("no panic"));
    }
    verify(&records, window == WIDE);
}

/// Has each endpoint know those on the other side.
async fn acquaint(endpoints: &[Endpoint]) -> [Vec<(usize, Peer)>; PLAYERS] {
    let mut peers = [const { Vec::new() }; PLAYERS];
    for near in 0..SIDE {
        for far in SIDE..PLAYERS {
            let peer = endpoints[near].connect(endpoints[far].name()).await.expect("it is there");
            let hello = endpoints[far].receive(Match::exactly(HELLO));
            let (sent, hello) = tokio::join!(peer.send(HELLO, ""), hello);
            let hello = hello.expect("it was sent");
            sent.expect("it was received");
            peers[near].push((far, peer));
            peers[far].push((near, hello.from));
        }
    }
    peers
}

impl Player {
    async fn play(mut self, barrier: Arc<Barrier>, all_sent: Arc<[AtomicU64; PLAYERS]>) -> Record {
        for _ in 0..effort(80, 300) {
            match self.luck.below(10) {
                0..4 => {
                    let to = self.send();
                    all_sent[to].fetch_add(1, Ordering::SeqCst);
                }
                4..7 => self.receive(),
                7 => self.cancel(),
                8 => self.probe(),
                _ => self.test(),
            }
            for _ in 0..self.luck.below(4) {
                tokio::task::yield_now().await;
            }
        }
        barrier.wait().await;
        self.ends(all_sent[self.number].load(Ordering::SeqCst)).await;
        barrier.wait().await;
        self.record
    }

    fn send(&mut self) -> usize {
        let (to, peer) = &self.peers[self.luck.below(self.peers.len() as u64) as usize];
        let number = self.record.sent[*to].len();
        let bits = bits(self.number, number, self.luck.below(TAG + 1));
        let (is_synchronous, body) = (self.luck.below(4) == 0, body(bits, len(bits)));
        let send = match is_synchronous {
            true => peer.send_synchronously(bits, body),
            false => peer.send(bits, body),
        };
        self.record.sent[*to].push(bits);
        self.sends.push(Sent { to: *to, number, is_synchronous, send });
        *to
    }

    /// Draws a pattern, and returns it as the model and as the endpoint have it.
    fn pattern(&mut self) -> (Pattern, Match) {
        let (bits, mask) = (self.luck.below(TAG + 1), self.luck.below(TAG + 1));
        let mask = if self.luck.below(2) == 0 { TAG } else { mask };
        let pattern = Match::bits(bits).mask(mask);
        match self.luck.below(2 * self.peers.len() as u64) as usize {
            at if at < self.peers.len() => {
                let (sender, peer) = &self.peers[at];
                (Pattern { sender: Some(*sender), bits, mask }, pattern.from(peer))
            }
            _ => (Pattern { sender: None, bits, mask }, pattern),
        }
    }

    fn receive(&mut self) {
        let (pattern, of) = self.pattern();
        let room = if self.luck.below(5) == 0 { 200 } else { usize::MAX };
        self.post(pattern, of, room);
    }

    fn post(&mut self, pattern: Pattern, of: Match, room: usize) {
        let at = self.clock.next();
        let receive = self.endpoint.receive_at_most(room, of);
        self.receives.push(Posted { step: self.record.steps.len(), at, room, receive });
        self.record.steps.push(Step::Receive(pattern, None));
    }

    fn cancel(&mut self) {
        if self.receives.is_empty() {
            return;
        }
        let at = self.luck.below(self.receives.len() as u64) as usize;
        if self.receives[at].receive.cancel() {
            let cancelled = self.receives.swap_remove(at).receive.test();
            assert_eq!(
                cancelled.expect("it is over").expect_err("cancelled"),
                ReceiveError::Cancelled
            );
        }
    }

    fn probe(&mut self) {
        let (pattern, of) = self.pattern();
        if let Some(probed) = self.endpoint.probe(of) {
            assert_eq!(probed.len, len(probed.bits));
            self.record.steps.push(Step::Probe(pattern, place(probed.bits)));
        }
    }

    /// Takes the outcomes that are there.
    fn test(&mut self) {
        for at in (0..self.receives.len()).rev() {
            if let Some(outcome) = self.receives[at].receive.test() {
                let posted = self.receives.swap_remove(at);
                self.received(&posted, outcome);
            }
        }
        for at in (0..self.sends.len()).rev() {
            if let Some(outcome) = self.sends[at].send.test() {
                outcome.expect("it is sent");
                let Sent { to, number, is_synchronous, .. } = self.sends.swap_remove(at);
                if is_synchronous {
                    self.record.done.push((to, number, self.clock.next()));
                }
            }
        }
    }

    fn received(
        &mut self,
        posted: &Posted,
        outcome: Result<doorbell_messages::Message, ReceiveError>,
    ) {
        let bits = match outcome {
            Ok(message) => {
                assert!(message.body.len() <= posted.room);
                check(&message, message.bits, len(message.bits));
                message.bits
            }
            Err(ReceiveError::Truncated { bits, len: of, room }) => {
                assert_eq!((of, room), (len(bits), posted.room));
                assert!(of > room);
                bits
            }
            Err(why) => panic!("{why}"),
        };
        let Step::Receive(_, got) = &mut self.record.steps[posted.step] else {
            unreachable!("the step was a receive");
        };
        *got = Some(place(bits));
        self.record.posted.push((place(bits), posted.at));
    }

    /// Cancels what waits, and receives all that is left of so many messages.
    async fn ends(&mut self, all: u64) {
        for mut posted in std::mem::take(&mut self.receives) {
            if !posted.receive.cancel() {
                let outcome = (&mut posted.receive).await;
                self.received(&posted, outcome);
            }
        }
        while (self.record.posted.len() as u64) < all {
            let pattern = Pattern { sender: None, bits: 0, mask: 0 };
            self.post(pattern, Match::any(), usize::MAX);
            let mut posted = self.receives.pop().expect("it was just posted");
            let outcome = (&mut posted.receive).await;
            self.received(&posted, outcome);
        }
        let sends = std::mem::take(&mut self.sends).into_iter().map(|sent| sent.send);
        join_all(sends).await.into_iter().for_each(|sent| sent.expect("it was received"));
        assert!(self.endpoint.probe(Match::any()).is_none(), "all was received");
    }
}

/// Checks what all endpoints saw; `is_wide` tells that no message was held at its sender.
fn verify(records: &[Record], is_wide: bool) {
    for (receiver, record) in records.iter().enumerate() {
        let sent = records.iter().map(|sender| sender.sent[receiver].clone()).collect();
        let history = History { sent, steps: record.steps.clone() };
        let out_of_order = || is_wide.then(|| history.is_of_no_order()).flatten();
        if let Some(why) = history.violation().or_else(out_of_order) {
            panic!("endpoint {receiver}: {why}\n{history:#x?}");
        }
        for (sender, of) in records.iter().enumerate() {
            for &(_, number, done) in of.done.iter().filter(|(to, ..)| *to == receiver) {
                let got = record.posted.iter().find(|(place, _)| *place == (sender, number));
                let (_, posted) = got.expect("all was received");
                assert!(*posted < done, "a synchronous send was done before its receive");
            }
        }
    }
}
