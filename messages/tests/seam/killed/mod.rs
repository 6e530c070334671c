//! Peers whose processes are killed, or stopped, at each stage of a message: what waits for them
//! ends with an error that names the peer, and nothing is left of them.

mod parts;

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use doorbell_kit::child::{self, Child};
use doorbell_messages::{Endpoint, Match, Peer, ReceiveError, SendError, Unsent};
use doorbell_verbs::{Config, KeepAlive};
use tokio::runtime::{Handle, Runtime};
use tokio::task::block_in_place;
use tokio::time::{sleep, timeout};

use parts::{LONG_BODY, Part, WANTED, WINDOW, play};

/// The time after which a silent peer has gone, and for which the end of a connection to it waits.
const SILENCE: Duration = Duration::from_secs(1);

/// Much less than the half minute after which silent peers have gone where nothing is configured,
/// and much more than a busy machine takes for the second that is.
const SOON: Duration = Duration::from_secs(15);

/// The fate of the other process.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Killed,
    Stopped,
}

impl Fate {
    fn is_met_by(self, child: &mut Child) {
        match self {
            Self::Killed => assert!(!child.kill().success()),
            Self::Stopped => child.stop(),
        }
    }
}

/// An endpoint, and another process that it has got to know.
struct Stage {
    near: Endpoint,
    child: Child,
    /// The other process's endpoint.
    peer: Peer,
    name: String,
    /// What the endpoint had before there was a peer.
    before: Holds,
}

/// What an endpoint holds of queue pairs, registrations and tasks.
type Holds = (usize, usize, usize);

fn holds(endpoint: &Endpoint) -> Holds {
    let objects = endpoint.nic().statistics().objects;
    (objects.queue_pairs, objects.registrations, Handle::current().metrics().num_alive_tasks())
}

fn runtime() -> Runtime {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.worker_threads(2).enable_all().build().expect("threads can be started")
}

/// Runs one side of a test, in which the other process plays a part.
fn run<F: Future<Output = ()>>(
    test: &'static str,
    device: &'static str,
    part: Part,
    side: impl FnOnce(Stage) -> F + Send + 'static,
) {
    if child::part().is_some() {
        return runtime().block_on(play(part, device));
    }
    // The other process may have nothing to tell, for which its reader would wait for ever.
    let (done, is_done) = mpsc::channel();
    let thread = thread::spawn(move || {
        runtime().block_on(async { side(Stage::open(test, device).await).await });
        let _ = done.send(());
    });
    if is_done.recv_timeout(4 * SOON) == Err(mpsc::RecvTimeoutError::Timeout) {
        panic!("it hangs: nothing takes {:?}", 4 * SOON);
    }
    thread.join().unwrap_or_else(|why| std::panic::resume_unwind(why));
}

impl Stage {
    /// Starts the other process, and says hello to its endpoint.
    async fn open(test: &str, device: &str) -> Self {
        let builder = Endpoint::builder().window(WINDOW);
        let keep_alive = KeepAlive { busy: SILENCE, ..KeepAlive::default() };
        let time_wait = Duration::from_millis(5);
        let config =
            Config { keep_alive, time_wait, connect_timeout: SILENCE, ..Config::default() };
        let builder = builder.endpoint(|below| below.nic(config));
        let near = builder.open(device).await.expect("the device opens");
        let before = holds(&near);
        let mut child = Child::start(test, "the other", None);
        let name = block_in_place(|| child.hear());
        let peer = near.connect(&name[..]).await.expect("it is there");
        peer.send(0, "hello").await.expect("it is sent");
        Self { near, child, peer, name, before }
    }

    /// Waits until the other process is where it is to be killed.
    fn is_ready(&mut self) {
        assert_eq!(block_in_place(|| self.child.hear()), "ready");
    }

    fn meets(&mut self, fate: Fate) {
        fate.is_met_by(&mut self.child);
    }

    /// Checks that nothing is left of the peer.
    async fn ends_in_time(self) {
        let is_gone = async {
            while holds(&self.near) != self.before {
                sleep(Duration::from_millis(5)).await;
            }
        };
        let gone = timeout(SOON, is_gone).await;
        gone.unwrap_or_else(|_| panic!("{:?} before, {:?} now", self.before, holds(&self.near)));
    }
}

/// Waits for the outcome of a receive of a peer that has gone, which must be that.
async fn receive_ends(receive: impl Future<Output = Result<impl Sized, ReceiveError>>, name: &str) {
    match timeout(SOON, receive).await.expect("it ends in time") {
        Err(ReceiveError::PeerGone { peer, .. }) => assert_eq!(&*peer, name),
        Err(why) => panic!("another error: {why}"),
        Ok(_) => panic!("nothing was sent that it takes"),
    }
}

/// Waits for the outcome of a send to a peer that has gone. Returns whether the message has left.
async fn send_ends(
    send: impl Future<Output = Result<(), SendError>>,
    of: usize,
    name: &str,
) -> bool {
    match timeout(SOON, send).await.expect("it ends in time") {
        Ok(()) => true,
        Err(SendError::Gone { peer, what: Unsent::Bytes(len), .. }) => {
            assert_eq!((&peer[..], len), (name, of));
            false
        }
        Err(why) => panic!("another error: {why}"),
    }
}

async fn before_the_receive(mut stage: Stage, fate: Fate) {
    stage.is_ready();
    let receives: Vec<_> =
        (0..10).map(|bits| stage.near.receive(Match::exactly(bits).from(&stage.peer))).collect();
    let mut any = stage.near.receive(Match::any());
    let sends: Vec<_> = (0..3).map(|bits| stage.peer.send_synchronously(bits, "few")).collect();
    stage.meets(fate);
    let name = stage.name.clone();
    for receive in receives {
        receive_ends(receive, &name).await;
    }
    for send in sends {
        assert!(!send_ends(send, 3, &name).await, "nobody has received it");
    }
    assert!(any.test().is_none() && any.cancel(), "others may send to it");
    assert!(!send_ends(stage.peer.send(1, "late"), 4, &name).await);
    drop(any);
    stage.ends_in_time().await;
}

async fn while_messages_to_it_are_held(mut stage: Stage, fate: Fate) {
    stage.is_ready();
    let sends: Vec<_> = (0..200).map(|bits| stage.peer.send(bits, vec![7; 1000])).collect();
    let synchronous = stage.peer.send_synchronously(200, "few");
    stage.meets(fate);
    let (name, mut left) = (stage.name.clone(), 0);
    for send in sends {
        left += usize::from(send_ends(send, 1000, &name).await);
    }
    assert!(left * 1000 <= WINDOW, "{left} messages have left");
    assert!(!send_ends(synchronous, 3, &name).await, "nobody has received it");
    stage.ends_in_time().await;
}

// What has come before is still to be had, in order.
async fn while_it_holds_messages(mut stage: Stage, fate: Fate) {
    let last = stage.near.receive(Match::exactly(u64::MAX).from(&stage.peer));
    stage.is_ready();
    for bits in 1..4 {
        let message = stage.near.receive(Match::any()).await.expect("it was sent");
        assert_eq!((message.bits, message.body.len()), (bits, 1000));
    }
    while stage.near.probe(Match::any()).is_none() {
        sleep(Duration::from_millis(1)).await;
    }
    stage.meets(fate);
    let name = stage.name.clone();
    receive_ends(last, &name).await;
    let mut next = 4;
    while stage.near.probe(Match::any().from(&stage.peer)).is_some() {
        let message = stage.near.receive(Match::any().from(&stage.peer)).await;
        let message = message.expect("it has come");
        assert_eq!((message.bits, message.body.len()), (next, 1000));
        next += 1;
    }
    assert!(next > 4, "one was seen");
    stage.ends_in_time().await;
}

async fn while_an_offer_of_its_own_was_taken(mut stage: Stage, fate: Fate) {
    let receive = stage.near.receive(Match::exactly(WANTED).from(&stage.peer));
    stage.is_ready();
    stage.meets(fate);
    receive_ends(receive, &stage.name).await;
    stage.ends_in_time().await;
}

async fn while_an_offer_to_it_is_unanswered(mut stage: Stage, fate: Fate) {
    let sends: Vec<_> = (0..100).map(|bits| stage.peer.send(bits, vec![7; 1000])).collect();
    stage.is_ready();
    stage.meets(fate);
    let (name, mut left) = (stage.name.clone(), 0);
    for send in sends {
        left += usize::from(send_ends(send, 1000, &name).await);
    }
    assert!(left * 1000 <= WINDOW, "{left} messages have left");
    stage.ends_in_time().await;
}

async fn in_the_middle_of_long_messages(stage: Stage, fate: Fate) {
    let Stage { near, child, peer, name, before } = stage;
    let receives = async {
        loop {
            match near.receive(Match::exactly(1).from(&peer)).await {
                Ok(message) => assert_eq!(message.body.len(), LONG_BODY),
                Err(ReceiveError::PeerGone { peer, .. }) => return assert_eq!(*peer, *name),
                Err(ReceiveError::NotPulled { peer, .. }) => assert_eq!(*peer, *name),
                Err(why) => panic!("another error: {why}"),
            }
        }
    };
    let body = bytes::Bytes::from(vec![7; LONG_BODY]);
    let sends = async { while send_ends(peer.send(2, body.clone()), LONG_BODY, &name).await {} };
    let meets_its_fate = tokio::task::spawn_blocking(move || {
        let mut child = child;
        assert_eq!(child.hear(), "ready");
        fate.is_met_by(&mut child);
        child
    });
    let ((), (), child) = tokio::join!(receives, sends, meets_its_fate);
    let child = child.expect("no panic");
    Stage { near, child, peer, name, before }.ends_in_time().await;
}

macro_rules! at_each_stage {
    ($($(#[$attribute:meta])* $stage:ident, $part:ident;)+) => {
        at_each_stage!(@device over_shared_memory, "shm", Killed: $($(#[$attribute])* $stage, $part;)+);
        at_each_stage!(@device over_sockets, "udp:127.0.0.1:0", Killed: $($(#[$attribute])* $stage, $part;)+);
        at_each_stage!(@device stopped_over_sockets, "udp:127.0.0.1:0", Stopped: $($(#[$attribute])* $stage, $part;)+);
    };
    (@device $module:ident, $device:literal, $fate:ident: $($(#[$attribute:meta])* $stage:ident, $part:ident;)+) => {
        mod $module {
            $(#[test]
            $(#[$attribute])*
            fn $stage() {
                let test = concat!("killed::", stringify!($module), "::", stringify!($stage));
                let side = |stage| crate::killed::$stage(stage, crate::killed::Fate::$fate);
                crate::killed::run(test, $device, crate::killed::Part::$part, side);
            })+
        }
    };
}

at_each_stage! {
    before_the_receive, IsSilent;
    while_messages_to_it_are_held, IsSilent;
    while_it_holds_messages, Holds;
    while_an_offer_of_its_own_was_taken, Offers;
    while_an_offer_to_it_is_unanswered, Searches;
    in_the_middle_of_long_messages, SendsLong;
}
