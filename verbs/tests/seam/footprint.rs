//! The memory that an idle connection takes.

use doorbell_kit::child;
use doorbell_verbs::{Buf, Config, Name, Nic, QueuePairConfig, ServiceId};
use tokio::runtime::Builder;

use crate::HELD;

const SERVICE: ServiceId = ServiceId(7);
const CONNECTIONS: usize = 1000;

/// A regression test of memory: both ends are in this process, and each has carried a message each
/// way.
#[test]
fn an_idle_connection_with_a_shared_receive_queue_takes_4_kib_at_most() {
    child::alone(|| {
        Builder::new_current_thread().enable_all().build().expect("a runtime").block_on(async {
            let config = Config { queue_pairs: CONNECTIONS + 1, ..Config::default() };
            let name = |end: &str| format!("shm:footprint/{}/{end}", std::process::id());
            let server = Nic::builder().config(config.clone()).open(&name("server")).await.unwrap();
            let client = Nic::builder().config(config).open(&name("client")).await.unwrap();
            let (here, there) = (client.domain(), server.domain());
            let receives = [&here, &there].map(|domain| domain.shared_receive_queue(64).unwrap());
            for queue in &receives {
                (0..64).for_each(|_| queue.post(0, Buf::with_capacity(64)).unwrap());
            }
            let depth = |queue| QueuePairConfig {
                send_depth: 8,
                ..QueuePairConfig::default().share(queue)
            };
            let mut listener = server.listen(SERVICE).await.unwrap();
            let mut pairs = Vec::with_capacity(2 * CONNECTIONS);
            let mut before = 0;
            for number in 0..=CONNECTIONS {
                if number == 1 {
                    // What is there once for all is there by now.
                    before = HELD.bytes();
                }
                let asks = here.queue_pair(&depth(&receives[0])).unwrap();
                let takes = there.queue_pair(&depth(&receives[1])).unwrap();
                let address = server.address().to_string();
                let (asked, taken) =
                    tokio::join!(asks.connect(Name::at(&*address, SERVICE.0), &[]), async {
                        takes.accept(listener.accept().await.expect("a request"), &[]).await
                    });
                let (asked, taken) = (asked.unwrap().0, taken.unwrap().0);
                for (from, to, queue) in [(&asked, &taken, 1), (&taken, &asked, 0)] {
                    let (sent, message) =
                        tokio::join!(from.send_inline(b"a message"), to.receive());
                    sent.unwrap();
                    receives[queue].post(0, message.unwrap().data).unwrap();
                }
                pairs.extend([asked, taken]);
            }
            let each = (HELD.bytes() - before) / (2 * CONNECTIONS as isize);
            println!("{each} bytes for each end of a connection");
            assert!(each <= 4096, "{each} bytes");
        });
    });
}
