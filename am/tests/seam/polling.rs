//! Programs that say themselves when handlers run.

use std::time::Duration;

use doorbell_am::{Bundle, BundleConfig, EndpointConfig, Handlers, ReplyId, RequestId, Tag};
use doorbell_kit::PATIENCE;
use doorbell_verbs::{Config, Nic, Progress};

const ADD: RequestId<(u64, u64)> = RequestId::new(0, "add");
const SUM: ReplyId<u64> = ReplyId::new(0, "sum");

/// Whoever polls has not the NIC in hand that a thread runs: so its handlers keep that from nothing, and
/// may even wait for the NIC.
#[test]
fn a_handler_that_is_polled_does_not_hold_up_the_thread_that_runs_the_nic() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let program = async {
        let own = std::process::id();
        let config = Config { time_wait: Duration::from_millis(5), ..Config::default() };
        // A thread that sleeps leaves the NIC to whoever would take it.
        let progress = Progress::Dedicated { core: None };
        let dedicated = Config { progress, spin: Duration::ZERO, ..config.clone() };
        let near = Nic::open(&format!("shm:am-polling-{own}/near"), config).expect("a name");
        let far = Nic::open(&format!("shm:am-polling-{own}/far"), dedicated).expect("a name");
        let bundle = |nic| Bundle::new(nic, &BundleConfig::default()).expect("room");
        let (here, there) = (bundle(&near), bundle(&far));
        let asks = move |request: doorbell_am::Request<'_>, (a, b)| {
            assert!(far.statistics().nic.received > 0, "it came by that");
            request.reply(SUM, a + b);
        };
        let config = EndpointConfig::default;
        let adds = Handlers::new().request(ADD, asks);
        let adds = there.endpoint(adds, config()).await.expect("room");
        let asks = here.endpoint(Handlers::new(), config()).await.expect("room");
        let peer = asks.map(0, adds.name(), Tag(1)).await.expect("it is there");
        let polls = async {
            loop {
                there.poll(true);
                tokio::task::yield_now().await;
            }
        };
        let calls = async {
            for number in 0..2000 {
                let reply = peer.call(ADD, (number, 2)).await.expect("it is answered");
                assert_eq!(reply.arguments(SUM), Ok(number + 2));
            }
        };
        tokio::select! {
            () = calls => {}
            () = polls => {}
        }
        assert_eq!(there.statistics().panics, 0);
    };
    let bounded = async { tokio::time::timeout(PATIENCE, program).await };
    runtime.expect("a runtime").block_on(bounded).expect("it does not hang");
}
