//! An endpoint, a good peer of it, and a stranger that speaks to it by Active Messages.

use std::ops::Deref;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, Once, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use doorbell_am::{self as am, Bundle, BundleConfig, Handlers, Kept, RequestId, Words};
use doorbell_messages::{Endpoint, Match, Peer};
use doorbell_verbs::{Config, Nic};
use futures_util::future::join_all;

use crate::ALLOCATED;
use crate::wire::{EAGER, GREET, SHORT, greeting, heading, kinds};

/// The window of all endpoints.
pub const WINDOW: usize = 64 << 10;

/// Panics of this process, by any thread or task.
static PANICS: AtomicU64 = AtomicU64::new(0);

/// What the stranger does with the requests that come to it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Requests {
    /// They are handled, and the victim has its credits back.
    Handled,
    /// They are kept, and the victim's credits with them.
    Kept,
}

/// An endpoint and its good peer.
pub struct Company {
    bundle: Bundle,
    /// The endpoint that is to be unhurt.
    pub victim: Endpoint,
    good: Endpoint,
    pub good_to_victim: Peer,
    /// The good peer, as the victim sees it.
    pub victim_to_good: Peer,
}

/// The stranger.
pub struct Stranger {
    _endpoint: am::Endpoint,
    to_victim: am::Peer,
}

/// All of them.
pub struct Stage {
    company: Company,
    pub stranger: Stranger,
    /// The stranger, as the victim sees it.
    pub to_stranger: Peer,
}

impl Deref for Stage {
    type Target = Company;

    fn deref(&self) -> &Company {
        &self.company
    }
}

impl Stage {
    pub async fn open(device: &str, requests: Requests) -> Self {
        count_panics();
        let company = Company::open(device).await;
        let stranger = am::Endpoint::builder().open(device, handlers(requests)).await;
        let stranger = stranger.expect("the device opens");
        let to_victim = stranger.connect(company.victim.name()).await.expect("it is there");
        let greeting = greeting(WINDOW as u64, &stranger.name().to_string());
        to_victim.call(GREET, greeting).await.expect("it is greeted");
        let stranger = Stranger::new(stranger, to_victim);
        stranger.say(EAGER, &[0, heading(5, false, false), 0], b"hello").await;
        let hello = company.victim.receive(Match::any()).await.expect("it was sent");
        Self { company, stranger, to_stranger: hello.from }
    }

    /// Has the stranger leave.
    pub fn left(self) -> Company {
        self.company
    }
}

impl Company {
    async fn open(device: &str) -> Self {
        let config = Config { time_wait: Duration::from_millis(5), ..Config::default() };
        let nic = Nic::builder().config(config).open(device).await.expect("the device opens");
        let bundle = Bundle::new(&nic, &BundleConfig::default()).expect("the NIC has room");
        let builder = || Endpoint::builder().window(WINDOW).patience(Duration::from_secs(1));
        let victim = builder().on_bundle(&bundle).await.expect("the NIC has room");
        let good = builder().open(device).await.expect("the device opens");
        let good_to_victim = good.connect(victim.name()).await.expect("it is there");
        good_to_victim.send(0, "hello").await.expect("it is sent");
        let hello = victim.receive(Match::any()).await.expect("it was sent");
        Self { bundle, victim, good, good_to_victim, victim_to_good: hello.from }
    }

    /// Returns the name by which others connect to the good peer.
    pub fn good_name(&self) -> String {
        self.good.name().to_string()
    }

    /// The good peer's messages are received, held ones, too, and nothing has panicked.
    pub async fn is_well(&self) {
        let sends =
            (0..300).map(|bits| self.good_to_victim.send_synchronously(bits, vec![7; 1000]));
        let sends: Vec<_> = sends.collect();
        for bits in 0..300 {
            let message = self.victim.receive(Match::exactly(bits).from(&self.victim_to_good));
            assert_eq!(message.await.expect("it was sent").body[..], [7; 1000]);
        }
        join_all(sends).await.into_iter().for_each(|sent| sent.expect("it was received"));
        assert_eq!(self.bundle.statistics().panics, 0, "handlers have panicked");
        assert_eq!(PANICS.load(Ordering::SeqCst), 0, "somebody has panicked");
    }
}

impl Stranger {
    /// An endpoint of Active Messages that has connected to the victim.
    pub fn new(endpoint: am::Endpoint, to_victim: am::Peer) -> Self {
        Self { _endpoint: endpoint, to_victim }
    }

    /// Has the stranger send a packet, whose words are followed by zeros. What can't be sent any
    /// more was refused, which is as well.
    pub async fn say(&self, kind: u16, words: &[u64], payload: &[u8]) {
        let mut three = [0; 3];
        three[..words.len()].copy_from_slice(words);
        self.say_anything(kind, &three, payload).await;
    }

    /// Has the stranger send any number of words to any handler.
    pub async fn say_anything(&self, handler: u16, words: &[u64], payload: &[u8]) {
        let id: RequestId<Words> = RequestId::new(handler, "anything");
        let words = Words::new(words).expect("they are few");
        let _ = self.to_victim.request_with(id, words, payload).await;
    }

    /// Has the stranger greet the victim.
    pub async fn greet(&self, greeting: Bytes) -> Bytes {
        self.to_victim.call(GREET, greeting).await.expect("it is answered")
    }

    /// Waits until the victim has handled all that the stranger has said, or has cut it off.
    pub async fn is_heard(&self) {
        self.to_victim.settled().await;
    }
}

/// Makes handlers for all that an endpoint of tagged messages says.
fn handlers(requests: Requests) -> Handlers {
    static KEPT: Mutex<Vec<Kept>> = Mutex::new(Vec::new());
    let handles = move |request: am::Request<'_>| {
        if requests == Requests::Kept {
            KEPT.lock().unwrap_or_else(PoisonError::into_inner).push(request.keep());
        }
    };
    let short = Handlers::new().request(SHORT, move |request, _| handles(request));
    kinds()
        .fold(short, |handlers, (_, id)| handlers.request(id, move |request, _| handles(request)))
}

fn count_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let prints = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            PANICS.fetch_add(1, Ordering::SeqCst);
            prints(panic);
        }));
    });
}

/// Checks that something makes this process hold no more than so many bytes more at any time that
/// the function is called.
pub struct Bounded {
    before: isize,
    most: isize,
}

impl Bounded {
    pub fn to(most: usize) -> Self {
        Self { before: ALLOCATED.bytes(), most: most as isize }
    }

    #[track_caller]
    pub fn check(&self, when: impl std::fmt::Display) {
        let holds = ALLOCATED.bytes() - self.before;
        assert!(holds <= self.most, "{holds} bytes more are held {when}");
    }
}
