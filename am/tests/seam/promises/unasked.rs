//! A peer that answers what it was not asked.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use doorbell_am::{Bundle, BundleConfig, Endpoint, Handlers, ReplyId};
use doorbell_verbs::work::Send;
use doorbell_verbs::{Name, QueuesConfig};

use crate::promises::devices::Devices;
use crate::promises::hostile::hello;

const TOLD: ReplyId<u64> = ReplyId::new(0, "told");

/// The handler of replies ran for each of these, and whatever it keeps grew without bound: Split-C
/// keeps the values of an answer until its program looks.
#[tokio::test]
async fn a_reply_to_no_request_runs_no_handler() {
    let devices = Devices::shm(2);
    let bundle = Bundle::new(&devices.nics[0], &BundleConfig::default()).expect("room");
    let runs = Arc::new(AtomicUsize::new(0));
    let handlers = Handlers::new().reply(TOLD, {
        let runs = runs.clone();
        move |_, _| {
            runs.fetch_add(1, Ordering::Relaxed);
        }
    });
    let far = Endpoint::on_bundle(&bundle, handlers).await.expect("room");
    let mut completions = devices.nics[1].completion_queue(64).expect("room");
    let own = devices.nics[1].domain().queues(&QueuesConfig::new(&completions)).expect("room");
    let (address, service) = (far.name().address(), far.name().service());
    let (mut queues, _) =
        own.connect(Name::at(address, service.0), &hello()).await.expect("it is let in");
    // A reply for handler 0, with one word.
    let mut reply = [0; 16];
    reply[..4].copy_from_slice(&(1_u32 << 29 | 1 << 24).to_le_bytes());
    const COUNT: u64 = 500;
    for _ in 0..COUNT {
        queues.send.post(Send::inline(&reply).expect("few")).expect("room");
        assert!(completions.completion().await.outcome.is_ok(), "the connection stands");
    }
    let seen = || (bundle.statistics().malformed, runs.load(Ordering::Relaxed));
    bundle.wait_until(|| (seen().0 + seen().1 as u64 >= COUNT).then_some(())).await;
    assert_eq!(seen(), (COUNT, 0), "how many were refused, and how many ran the handler");
}
