//! Peers that go.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use doorbell_am::{
    Bundle, BundleConfig, Endpoint, Handlers, Kept, RequestId, SendError, Tag, Undeliverable,
};

use crate::promises::devices::Devices;

const KEEP: RequestId<u64> = RequestId::new(0, "keep");

#[tokio::test]
async fn requests_under_way_to_a_peer_that_goes_come_back() {
    let devices = Devices::shm(2);
    let bundle = |number: usize| Bundle::new(&devices.nics[number], &BundleConfig::default());
    let (near, far) = (bundle(0).expect("room"), bundle(1).expect("room"));
    let lost = Arc::new(AtomicU64::new(0));
    let counts = lost.clone();
    let handlers = Handlers::new().returned(move |returned| {
        assert_eq!((returned.why(), returned.handler()), (Undeliverable::PeerGone, None));
        counts.fetch_add(1, Ordering::Relaxed);
    });
    let near = Endpoint::on_bundle(&near, handlers).await.expect("room");
    let (keeps, mut kept) = tokio::sync::mpsc::unbounded_channel::<Kept>();
    let handlers = Handlers::new().request(KEEP, move |request, _| {
        keeps.send(request.keep()).unwrap_or_else(|_| panic!("it is awaited"));
    });
    let far = Endpoint::on_bundle(&far, handlers).await.expect("room");
    let peer = near.map(0, far.name(), Tag(1)).await.expect("it is there");
    for number in 0..5 {
        peer.request(KEEP, number).await.expect("it is there");
    }
    let called = peer.clone();
    let call = tokio::spawn(async move { called.call(KEEP, 5).await.err() });
    let mut all = Vec::new();
    for _ in 0..6 {
        all.extend(kept.recv().await);
    }
    drop(far);
    let gone = call.await.expect("it does not fail").expect("nobody answers");
    assert_eq!(gone.undeliverable(), Some(Undeliverable::PeerGone));
    while lost.load(Ordering::Relaxed) < 5 {
        tokio::task::yield_now().await;
    }
    assert!(matches!(peer.request(KEEP, 6).await, Err(SendError::Gone { .. })));
    // Answers to nobody go nowhere.
    drop(all);
}
