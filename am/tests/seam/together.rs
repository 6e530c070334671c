//! Calls of many tasks, which share packets.

use doorbell_am::{Call, EndpointConfig, Handlers};
use tokio::task::JoinSet;

use crate::common::{Over, endpoint_with, runtime};

const NEXT: Call<u64, u64> = Call::new("next");

/// Each task waited for its answer before the next made its call, and each call had a packet of its
/// own.
#[test]
fn calls_of_many_tasks_of_a_thread_share_packets() {
    const TASKS: u64 = 64;
    const CALLS: u64 = 50;
    runtime().block_on(async {
        let config = EndpointConfig {
            credits: TASKS as usize,
            first_credits: TASKS as usize,
            ..EndpointConfig::default()
        };
        let next = Handlers::new().on(NEXT, |_, number: u64| number + 1);
        let far = endpoint_with(Over::Shm, next, config.clone()).await;
        let near = endpoint_with(Over::Shm, Handlers::new(), config).await;
        let peer = near.connect(far.name()).await.expect("it is there");
        // The place of the handler is asked for once.
        assert_eq!(peer.call(NEXT, 0).await.expect("it is answered"), 1);
        let packets = || near.bundle().nic().statistics().device.packets_sent;
        let before = packets();
        let mut tasks = JoinSet::new();
        for _ in 0..TASKS {
            let peer = peer.clone();
            tasks.spawn(async move {
                for number in 0..CALLS {
                    assert_eq!(peer.call(NEXT, number).await.expect("it is answered"), number + 1);
                }
            });
        }
        while let Some(ended) = tasks.join_next().await {
            ended.expect("no panic");
        }
        let packets = packets() - before;
        assert!(packets < TASKS * CALLS / 4, "{packets} packets for {} calls", TASKS * CALLS);
    });
}
