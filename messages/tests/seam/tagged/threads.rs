//! Many tasks and threads on one endpoint.

use doorbell_messages::Match;
use tokio::runtime::Handle;

use crate::ends::{Ends, Pair};

pub async fn many_tasks_send_and_receive_at_once(ends: Ends) {
    let Pair { near: _near, far, peer } = ends.pair(8192).await;
    let tasks = (0..8).map(|task| {
        let (far, peer) = (far.clone(), peer.clone());
        tokio::spawn(async move {
            for number in 0..200_u64 {
                let receive = far.receive(Match::exactly(task));
                peer.send(task, number.to_be_bytes().to_vec()).await.expect("it is sent");
                let message = receive.await.expect("it was sent");
                assert_eq!(message.body, number.to_be_bytes().to_vec());
            }
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.expect("no panic");
    }
}

// Each pair of threads is a stream of its own, and all share two endpoints and one window.
pub async fn many_threads_send_and_receive_on_one_endpoint(ends: Ends) {
    const PAIRS: u64 = 4;
    const COUNT: u64 = 200;
    let Pair { near: _near, far, peer } = ends.pair(4096).await;
    let threads = (0..PAIRS).flat_map(|pair| {
        let (far, peer) = (far.clone(), peer.clone());
        let (sender, receiver) = (Handle::current(), Handle::current());
        let sends = tokio::task::spawn_blocking(move || {
            for number in 0..COUNT {
                let send = match number % 3 {
                    0 => peer.send_synchronously(pair, number.to_be_bytes().to_vec()),
                    _ => peer.send(pair, number.to_be_bytes().to_vec()),
                };
                sender.block_on(send).expect("it is sent");
            }
        });
        let receives = tokio::task::spawn_blocking(move || {
            for number in 0..COUNT {
                let message = receiver.block_on(far.receive(Match::exactly(pair)));
                assert_eq!(message.expect("it was sent").body, number.to_be_bytes().to_vec());
            }
        });
        [sends, receives]
    });
    for thread in threads.collect::<Vec<_>>() {
        thread.await.expect("no panic");
    }
}
