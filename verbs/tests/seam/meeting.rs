//! Connections that are made with several peers at a time.

use std::sync::Arc;

use doorbell_verbs::{Name, Nic, QueuePairConfig, ServiceId};
use tokio::task::JoinSet;

const SERVICE: ServiceId = ServiceId(7);

/// Regression test for a bug: datagrams of connection managers to different hosts left in one run,
/// all of them to the first host, which took those for other hosts to be damaged.
#[tokio::test]
async fn datagrams_to_one_peer_never_go_to_another() {
    const PEERS: usize = 4;
    const AT_A_TIME: usize = 16;
    let open = |_| Arc::new(Nic::builder().open_blocking("udp:127.0.0.1:0").unwrap());
    let nics: Vec<Arc<Nic>> = (0..PEERS).map(open).collect();
    let mut tasks = JoinSet::new();
    for (at, nic) in nics.iter().enumerate() {
        let mut listener = nic.listen(SERVICE).await.unwrap();
        let accepts = nic.clone();
        tasks.spawn(async move {
            let mut pairs = Vec::new();
            for _ in 0..AT_A_TIME * (PEERS - 1) {
                let pair = accepts.domain().queue_pair(&QueuePairConfig::default()).unwrap();
                pairs.push(
                    pair.accept(listener.accept().await.expect("a request"), &[]).await.unwrap().0,
                );
            }
            pairs
        });
        for other in nics.iter().enumerate().filter(|(other, _)| *other != at) {
            for _ in 0..AT_A_TIME {
                let (nic, address) = (nic.clone(), other.1.address().to_string());
                tasks.spawn(async move {
                    let pair = nic.domain().queue_pair(&QueuePairConfig::default()).unwrap();
                    vec![pair.connect(Name::at(&*address, SERVICE.0), &[]).await.unwrap().0]
                });
            }
        }
    }
    let pairs = tasks.join_all().await;
    for nic in nics {
        let seen = nic.statistics();
        assert_eq!((seen.nic.malformed, seen.connections.malformed), (0, 0), "{seen:?}");
    }
    drop(pairs);
}
