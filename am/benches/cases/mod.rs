//! What is measured again and again.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use doorbell_am::{Bundle, BundleConfig, Call, Endpoint, Handlers, Peer, ReplyId, RequestId, Tag};
use doorbell_verbs::Nic;

pub const ROUNDS: u64 = 20_000;

const PING: RequestId<(u64, u64)> = RequestId::new(0, "ping");
const ECHO: Call<(u64, u64), (u64, u64)> = Call::new("echo");
const PONG: ReplyId<(u64, u64)> = ReplyId::new(0, "pong");

/// A measured case, one round of which is `once`.
pub trait Case {
    const NAME: &'static str;
    fn once(&mut self);
}

/// Two NICs in this process.
pub fn nics() -> (Nic, Nic) {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let (own, count) = (std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    let name = |end| format!("shm:messages-{own}-{count}/{end}");
    let open = |end| Nic::builder().open_blocking(&name(end)).expect("a name");
    (open(0), open(1))
}

/// A request of two words, and a reply.
pub struct Messages {
    bundles: [Bundle; 2],
    peer: Peer,
    replies: Arc<AtomicU64>,
    expected: u64,
    _endpoints: [Endpoint; 2],
}

impl Messages {
    pub async fn new() -> Self {
        let (near, far) = nics();
        let bundle = |nic| Bundle::new(nic, &BundleConfig::default()).expect("room");
        let (near, far) = (bundle(&near), bundle(&far));
        let replies = Arc::new(AtomicU64::new(0));
        let counts = replies.clone();
        let replied = Handlers::new().reply(PONG, move |_, _| {
            counts.fetch_add(1, Ordering::Relaxed);
        });
        let asked = Handlers::new().request(PING, |request, words| request.reply(PONG, words));
        let here = Endpoint::on_bundle(&near, replied).await.expect("room");
        let there = Endpoint::on_bundle(&far, asked).await.expect("room");
        let peer = here.map(0, there.name(), Tag(1)).await.expect("it is there");
        let (bundles, _endpoints) = ([near, far], [here, there]);
        Self { bundles, peer, replies, expected: 0, _endpoints }
    }
}

impl Case for Messages {
    const NAME: &'static str = "a request and its reply, two words";

    #[inline(never)]
    fn once(&mut self) {
        let credit = self.peer.try_credit().expect("it is there").expect("a credit");
        credit.request(PING, (1, self.expected)).expect("two words");
        self.bundles[1].poll(true);
        self.bundles[0].poll(true);
        self.expected += 1;
        assert_eq!(self.replies.load(Ordering::Relaxed), self.expected);
    }
}

/// A call of two words to an endpoint of the same NIC, and its answer.
pub struct Calls {
    bundle: Bundle,
    peer: Peer,
    _endpoints: [Endpoint; 2],
}

impl Calls {
    pub async fn new() -> Self {
        let bundle = Bundle::new(&nics().0, &BundleConfig::default()).expect("room");
        let asked = Handlers::new().request(PING, |request, words| request.reply(PONG, words));
        let here = Endpoint::on_bundle(&bundle, Handlers::new()).await.expect("room");
        let there = Endpoint::on_bundle(&bundle, asked).await.expect("room");
        let peer = here.map(0, there.name(), Tag(1)).await.expect("it is there");
        Self { bundle, peer, _endpoints: [here, there] }
    }
}

impl Case for Calls {
    const NAME: &'static str = "a call and its answer on one NIC, two words";

    #[inline(never)]
    fn once(&mut self) {
        // Where it is, as one that is awaited: to move it costs as well.
        let call = std::pin::pin!(self.peer.call(PING, (1, 2)));
        let told = self.bundle.block_on(call);
        assert_eq!(told.expect("it is answered").arguments(PONG), Ok((1, 2)));
    }
}

/// A typed call of two words to an endpoint of the same NIC, and its answer.
pub struct TypedCalls(Calls);

impl TypedCalls {
    pub async fn new() -> Self {
        let bundle = Bundle::new(&nics().0, &BundleConfig::default()).expect("room");
        let asked = Handlers::new().on(ECHO, |_, words| words);
        let here = Endpoint::on_bundle(&bundle, Handlers::new()).await.expect("room");
        let there = Endpoint::on_bundle(&bundle, asked).await.expect("room");
        let peer = here.connect(there.name()).await.expect("it is there");
        Self(Calls { bundle, peer, _endpoints: [here, there] })
    }
}

impl Case for TypedCalls {
    const NAME: &'static str = "a typed call and its answer on one NIC";

    #[inline(never)]
    fn once(&mut self) {
        let call = std::pin::pin!(self.0.peer.call(ECHO, (1, 2)));
        assert_eq!(self.0.bundle.block_on(call), Ok((1, 2)));
    }
}

/// Runs all rounds of a case. Callgrind counts what happens in here, by the function's name.
#[inline(never)]
pub fn counted<C: Case>(case: &mut C) {
    for _ in 0..ROUNDS {
        case.once();
    }
}
