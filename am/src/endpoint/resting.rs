//! Receives that rest while the endpoint is idle: see [`Buffers`](crate::receives::Buffers).

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::core::Core;

impl Core {
    /// Has the receives rest, if no request has come or gone since this was called before. Returns
    /// whether they do.
    pub(super) fn rest_if_idle(&self) -> bool {
        let add = |all: u32, more| all.wrapping_add(more);
        let requests = self.links().iter().map(|link| link.requests()).fold(0, add);
        if self.requests_at_mark.swap(requests, Ordering::Relaxed) != requests {
            return false;
        }
        self.rest()
    }

    /// Has the receives rest, unless a thread handles messages. Returns whether they do.
    fn rest(&self) -> bool {
        let mut given_up = 0;
        let rests = self.engine.between_messages(|| {
            self.buffers.rest();
            let links = self.links_that(|link| Arc::ptr_eq(&link.buffers, &self.buffers));
            given_up = links.iter().map(|link| link.rest()).sum();
        });
        if rests {
            self.buffers.give_back(given_up);
        }
        rests
    }
}

#[cfg(all(test, not(am_loom)))]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::{Duration, Instant};

    use doorbell_verbs::Nic;
    use tokio::task::JoinSet;

    use super::Core;
    use crate::{
        Bundle, BundleConfig, Call, Endpoint, EndpointBuilder, Handlers, Notice, Peer, Received,
    };

    /// Goes back and forth between two endpoints so many times more, and returns how many there
    /// were.
    const NEST: Call<u64, u64> = Call::new("nest");
    /// Takes so long that the endpoint asks the caller meanwhile whether it waits still.
    const SLOW: Call<(), u64> = Call::new("slow");
    const NOTE: Notice<u64> = Notice::new("note");

    async fn nest(request: Received, levels: u64) -> u64 {
        match levels {
            0 => 0,
            _ => request.peer().call(NEST, levels - 1).await.expect("it is answered") + 1,
        }
    }

    async fn slow(_: Received, (): ()) -> u64 {
        tokio::time::sleep(Duration::from_millis(250)).await;
        7
    }

    async fn opened(device: &str, builder: EndpointBuilder) -> Endpoint {
        let nic = Nic::open(device).await.expect("nobody has it");
        let bundle = Bundle::new(&nic, &BundleConfig::default()).expect("room");
        let handlers = Handlers::new().on_async(NEST, nest).on_async(SLOW, slow);
        builder.on_bundle(&bundle, handlers.on(NOTE, |_, _| {})).await.expect("room")
    }

    /// Sends all kinds of requests, of which several are under way at a time.
    async fn sends_all_kinds(peer: &Peer) {
        let mut tasks = JoinSet::new();
        for task in 0..6 {
            let peer = peer.clone();
            tasks.spawn(async move {
                for number in 0..400 {
                    let levels = (task + number) % 4;
                    assert_eq!(peer.call(NEST, levels).await.expect("it is answered"), levels);
                    peer.notify(NOTE, number).await.expect("it is there");
                }
            });
        }
        let waits = peer.clone();
        tasks.spawn(async move {
            for _ in 0..4 {
                assert_eq!(waits.call(SLOW, ()).await.expect("it is answered"), 7);
            }
        });
        while let Some(ended) = tasks.join_next().await {
            ended.expect("no panic");
        }
    }

    /// The number of receives that are posted.
    fn posted(core: &Core) -> usize {
        let config = &core.local.config;
        config.receives + config.peers - core.buffers.queue().room()
    }

    async fn rests_all_the_time(devices: [&str; 2]) {
        let one_of_many = Endpoint::builder().listens(false).first_receives(1).places(4);
        let near = opened(devices[0], one_of_many).await;
        let far = opened(devices[1], Endpoint::builder()).await;
        let peer = near.connect(far.name()).await.expect("it is there");
        let (core, ends) = (near.0.core.clone(), Arc::new(AtomicBool::new(false)));
        let rests = {
            let (core, ends) = (core.clone(), ends.clone());
            move || {
                while !ends.load(Ordering::Relaxed) {
                    core.rest();
                    std::thread::sleep(Duration::from_micros(20));
                }
            }
        };
        let rests = std::thread::spawn(rests);
        sends_all_kinds(&peer).await;
        ends.store(true, Ordering::Relaxed);
        rests.join().expect("no panic");
        for end in [&near, &far] {
            let seen = end.nic().statistics().nic;
            assert_eq!((seen.rnr_naks_sent, seen.rnr_naks_received), (0, 0), "{devices:?}");
        }
        // What is posted in the end is what the peer was promised.
        let promised = || core.links().iter().map(|link| link.grants()).sum::<usize>();
        let until = Instant::now() + Duration::from_secs(60);
        while !core.rest() || posted(&core) != promised() {
            assert!(Instant::now() < until, "{} for {}", posted(&core), promised());
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    #[test]
    fn every_message_finds_a_receive_however_often_the_receives_rest() {
        let mut runtime = tokio::runtime::Builder::new_multi_thread();
        let runtime = runtime.worker_threads(3).enable_all().build().expect("a runtime");
        let own = std::process::id();
        let [near, far] = ["near", "far"].map(|end| format!("shm:am-resting-{own}/{end}"));
        runtime.block_on(async {
            rests_all_the_time(["udp:127.0.0.1:0"; 2]).await;
            rests_all_the_time([&near, &far]).await;
        });
    }
}
