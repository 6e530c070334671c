//! Packets to an endpoint of tagged messages, from an endpoint of Active Messages.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use doorbell_am::{self as am, Call, Handlers, RequestId, Words};
use doorbell_messages::{Endpoint, Match, Peer};

use super::MOST;
use super::input::Input;
use super::words::{payload, word, words};

const GREET: Call<Bytes, Bytes> = Call::new("doorbell messages: greet");

/// The kinds of packets, of which each is the number of its handler; and the handlers of packets
/// with sequence numbers, of acknowledgements, and of short messages.
const EAGER: u16 = 0;
const TAKEN: u16 = 1;
const HOLDS: u16 = 3;
const OFFER: u16 = 4;
const KINDS: u16 = 11;
const STRIPED: u16 = 20;
const ACKNOWLEDGED: u16 = 21;
const SHORT: u16 = 22;

/// The names of all kinds of packets, in the order of their numbers.
const NAMES: [&str; KINDS as usize] = [
    "messages: eager",
    "messages: taken",
    "messages: more",
    "messages: holds",
    "messages: offer",
    "messages: freed",
    "messages: search",
    "messages: given up",
    "messages: take",
    "messages: leave",
    "messages: done",
];

/// The window of the endpoint, and the longest message that it takes.
const WINDOW: usize = 16 << 10;
const LONGEST: usize = 1 << 16;

/// The bits of the peer that keeps the rules, and of a message that never comes.
const GOOD: u64 = 1 << 50;
const NEVER: u64 = 1 << 51;

/// The endpoint that is told nonsense, and a peer that keeps the rules.
pub struct Tagged {
    victim: Endpoint,
    _good: Endpoint,
    to_victim: Peer,
}

impl Tagged {
    pub async fn open() -> Self {
        let open = || Endpoint::builder().window(WINDOW).eager(4096).longest(LONGEST).open("shm");
        let (victim, good) = (open().await.expect("it opens"), open().await.expect("it opens"));
        let to_victim = good.connect(victim.name()).await.expect("the victim is there");
        Self { victim, _good: good, to_victim }
    }

    /// Sends the packets of an input, over a connection of their own.
    pub async fn hears(&self, input: &mut Input<'_>) {
        let heard = Heard::default();
        let stranger = am::Endpoint::open("shm", handlers(&heard)).await.expect("it opens");
        let to_victim = stranger.connect(self.victim.name()).await.expect("it is there");
        let shape = input.u8();
        let _ = to_victim.call(GREET, greeting(shape, &stranger.name().to_string())).await;
        let posted: Vec<_> = (0..6).map(|bits| self.victim.receive(Match::exactly(bits))).collect();
        // What waits for the stranger, if it has become a peer.
        let waits = match hello(&to_victim, &self.victim).await {
            None => None,
            Some(peer) => {
                let receive = self.victim.receive(Match::exactly(NEVER).from(&peer));
                let body = |bits: u64| vec![7; 100 + 300 * bits as usize];
                let held: Vec<_> = (0..12).map(|bits| peer.send(bits, body(bits))).collect();
                Some((receive, held, peer.send_synchronously(3, "synchronous")))
            }
        };
        if shape & 1 == 1 {
            // So receives search at the stranger.
            let holds: RequestId<Words> = RequestId::new(HOLDS, "holds");
            let _ = to_victim.request(holds, Words::new(&[1, 0, 0]).expect("three words")).await;
            to_victim.settled().await;
        }
        for _ in 0..MOST {
            if input.is_empty() || to_victim.ending().is_some() {
                break;
            }
            // What can't be sent is refused by the peer, or too long.
            match input.u8() {
                kind @ ..16 => greets(&to_victim, kind, shape, input).await,
                kind => say(&to_victim, kind, &heard, input).await,
            }
            self.looks(input);
            tokio::task::yield_now().await;
        }
        to_victim.settled().await;
        drop((posted, to_victim, stranger));
        if let Some((receive, held, synchronous)) = waits {
            receive.await.expect_err("no message has such bits");
            // Whether a message has left is for the stranger to say; an end it has at any rate.
            for send in held.into_iter().chain([synchronous]) {
                let _ = send.await;
            }
        }
        self.is_well().await;
    }

    /// Has the program look at what has come, as its input says.
    fn looks(&self, input: &mut Input<'_>) {
        match input.u8() {
            0..8 => drop(self.victim.probe(Match::any())),
            8..16 => drop(self.victim.receive(Match::any())),
            _ => {}
        }
    }

    /// Messages of the peer that keeps the rules are received, and nothing has panicked.
    async fn is_well(&self) {
        for len in [0, 2000, 20_000] {
            let (sent, received) = tokio::join!(
                self.to_victim.send_synchronously(GOOD, vec![9; len]),
                self.victim.receive(Match::exactly(GOOD)),
            );
            sent.expect("it is received");
            assert!(received.expect("it was sent").body == vec![9; len]);
        }
        assert_eq!(self.victim.bundle().statistics().panics, 0, "handlers have panicked");
    }
}

/// A greeting of an endpoint of one device, of which the shape spoils something.
fn greeting(shape: u8, name: &str) -> Bytes {
    let window = [0, 4096, u64::MAX][usize::from(shape % 3)];
    let places = [1, 1, 1, 1, 2, 0, 1 << 16 | 1][usize::from(shape / 3 % 7)];
    let address = if shape > 250 { 1 << 40 } else { 0 };
    let words = [2, window, 4096, 0, 0, places, u64::from(shape % 5), address, 0, 0];
    words.into_iter().flat_map(u64::to_be_bytes).chain(name.bytes()).collect()
}

/// Greets again, with bytes of the input put somewhere.
async fn greets(peer: &am::Peer, kind: u8, shape: u8, input: &mut Input<'_>) {
    let mut bytes = greeting(shape.wrapping_add(kind), "shm:again#1").to_vec();
    let at = usize::from(input.u8()) % bytes.len();
    let spoilt = input.bytes(usize::from(kind));
    let end = bytes.len().min(at + spoilt.len());
    bytes[at..end].copy_from_slice(&spoilt[..end - at]);
    let _ = peer.call(GREET, Bytes::from(bytes)).await;
}

/// Has the victim tell who the stranger is, by a message of its own. Returns `None` if the victim
/// has not taken the stranger for a peer.
async fn hello(to_victim: &am::Peer, victim: &Endpoint) -> Option<Peer> {
    let mut receive = victim.receive(Match::exactly(GOOD + 1));
    let id: RequestId<Words> = RequestId::new(SHORT, "hello");
    let _ = to_victim.request(id, Words::new(&[GOOD + 1, 0]).expect("two words")).await;
    to_victim.settled().await;
    receive.test().map(|message| message.expect("it has come").from)
}

/// Sends a packet that is made of the next bytes of the input.
async fn say(peer: &am::Peer, kind: u8, heard: &Heard, input: &mut Input<'_>) {
    let long = |len: u64| len << 8 | 2;
    let heard = heard.lock().expect("nobody panics").clone();
    let few = [0, 1 << 8, 100 << 8, 5000 << 8, long(100), long(5000), long(1 << 16), 100];
    let some: Vec<_> = few.into_iter().chain(heard.iter().copied()).collect();
    let handler = match kind % 16 {
        12 => STRIPED,
        13 => ACKNOWLEDGED,
        14 => SHORT,
        15 => input.u8().into(),
        few => u16::from(few) % KINDS,
    };
    let (words, payload) = match handler {
        STRIPED => {
            let [sequence, kind, a, b, c] = words(input, &some);
            (vec![sequence % 70_000, kind % 12, a, b, c], payload(input))
        }
        ACKNOWLEDGED => (vec![word(input, &some)], Vec::new()),
        SHORT => {
            let len = usize::from(input.u8() % 120);
            let mut words = vec![word(input, &some), len as u64];
            words.extend((0..len.div_ceil(8)).map(|_| 7));
            words.truncate(1 + usize::from(input.u8() % 16));
            (words, Vec::new())
        }
        EAGER | TAKEN if input.u8() < 100 => {
            let [bits, number] = words(input, &some);
            let (len, bytes) = described(input);
            (vec![bits, long(len), number], bytes)
        }
        OFFER => {
            let search = if input.u8() < 200 { word(input, &heard) } else { word(input, &some) };
            let [order, len] = words(input, &some);
            (vec![search, order, u64::from(input.u8() % 8)], len.to_be_bytes().to_vec())
        }
        _ => (words::<3>(input, &some).to_vec(), payload(input)),
    };
    let id: RequestId<Words> = RequestId::new(handler, "anything");
    if let Some(words) = Words::new(&words) {
        let _ = peer.request_with(id, words, payload).await;
    }
}

/// A description of a long message in some pieces, with its length as the input has it.
fn described(input: &mut Input<'_>) -> (u64, Vec<u8>) {
    let (mut len, mut bytes) = (0_u64, Vec::new());
    for _ in 0..1 + input.u8() % 3 {
        // 8 says that an address follows, and other flags have no meaning.
        let flags = input.choose(&[0, 0, 8, 8, 8, 1, 0x88]);
        let devices = 1 + input.u8() % 3;
        let here = word(input, &[1, 100, 5000, 40_000]);
        len = len.wrapping_add(here);
        bytes.extend([flags, devices]);
        for device in 0..devices {
            let address = word(input, &[4096, u64::MAX - 4]);
            bytes.extend([address, here].into_iter().flat_map(u64::to_be_bytes));
            bytes.extend(u32::from(device).to_be_bytes());
        }
        bytes.extend((0..flags & 8).map(|_| 2));
    }
    match input.u8() {
        0..8 => bytes.truncate(input.u8().into()),
        8..16 => len = word(input, &[len + 1]),
        _ => {}
    }
    (len, bytes)
}

/// The first words of what the victim has said last: numbers of searches, orders of messages, and
/// the like.
type Heard = Arc<Mutex<Vec<u64>>>;

/// Handlers for whatever the victim says, which answer nothing.
fn handlers(heard: &Heard) -> Handlers {
    let kinds = (0..KINDS).zip(NAMES).fold(Handlers::new(), |handlers, (kind, name)| {
        let (id, heard): (RequestId<[u64; 3]>, _) = (RequestId::new(kind, name), heard.clone());
        handlers.request(id, move |_, [first, ..]| {
            let mut heard = heard.lock().expect("nobody panics");
            heard.insert(0, first);
            heard.truncate(8);
        })
    });
    let striped: RequestId<[u64; 5]> = RequestId::new(STRIPED, "messages: striped");
    let acknowledged: RequestId<u64> = RequestId::new(ACKNOWLEDGED, "messages: acknowledged");
    let short: RequestId<Words> = RequestId::new(SHORT, "messages: short");
    kinds.request(striped, |_, _| ()).request(acknowledged, |_, _| ()).request(short, |_, _| ())
}
