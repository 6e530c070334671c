//! The memory that endpoints give up which are many and idle.

use std::time::{Duration, Instant};

use doorbell_am::{Bundle, BundleConfig, Endpoint, Handlers, ReplyId, RequestId};
use doorbell_kit::PATIENCE;
use doorbell_kit::child;
use doorbell_verbs::Nic;
use tokio::runtime::Builder;

use crate::HELD;

const ASK: RequestId<u64> = RequestId::new(0, "ask");
const TOLD: ReplyId<u64> = ReplyId::new(0, "told");

#[test]
fn an_endpoint_that_is_one_of_many_gives_up_receives_when_it_is_idle_for_long() {
    child::alone(|| {
        Builder::new_current_thread().enable_all().build().expect("a runtime").block_on(async {
            const ENDPOINTS: usize = 100;
            /// The bytes of the buffers that all endpoints share, and of what else may stay.
            const STAYS: isize = (64 << 12) + (128 << 10);
            let bundle = |end| {
                let name = format!("shm:am-resting-{}/{end}", std::process::id());
                let nic = Nic::builder().open_blocking(&name).expect("a name");
                Bundle::new(&nic, &BundleConfig::default()).expect("room")
            };
            let handlers =
                Handlers::new().request(ASK, |request, number| request.reply(TOLD, number + 1));
            let far = Endpoint::on_bundle(&bundle("far"), handlers).await.expect("room");
            let (near, mut all) = (bundle("near"), Vec::new());
            for _ in 0..ENDPOINTS {
                let one_of_many = Endpoint::builder().listens(false).first_receives(1);
                let end = one_of_many.on_bundle(&near, Handlers::new()).await.expect("room");
                let peer = end.connect(far.name()).await.expect("it is there");
                peer.call(ASK, 1).await.expect("it answers");
                all.push((end, peer));
            }
            let before = HELD.bytes();
            let mut taken = 0;
            for (_, peer) in &all {
                let before = HELD.bytes();
                for number in 0..20 {
                    peer.call(ASK, number).await.expect("it answers");
                }
                // Meanwhile others may give theirs up.
                taken += (HELD.bytes() - before).max(0);
            }
            assert!(taken > STAYS, "{taken} bytes");
            let until = Instant::now() + PATIENCE;
            while HELD.bytes() - before > STAYS {
                assert!(Instant::now() < until, "{} bytes of {taken}", HELD.bytes() - before);
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        });
    });
}
