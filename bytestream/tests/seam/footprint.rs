//! What a stream that is idle costs.

use doorbell_bytestream::{Endpoint, ServiceId};
use doorbell_kit::child;
use doorbell_verbs::{Config as NicConfig, Nic};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::runtime::Builder;

use crate::HELD;

const STREAMS: usize = 1000;

/// Both ends of all streams are in this process, and each stream has carried some bytes in each
/// direction. The buffers that the streams share are there from the beginning.
#[test]
fn an_idle_stream_takes_16_kib_at_most() {
    child::alone(|| {
        Builder::new_current_thread().enable_all().build().expect("a runtime").block_on(async {
            let config = NicConfig { queue_pairs: STREAMS + 10, ..NicConfig::default() };
            let open = async || {
                let nic = Nic::builder().config(config.clone()).open("shm").await;
                Endpoint::on(&nic.expect("a device")).await.expect("room")
            };
            let (near, far) = (open().await, open().await);
            let mut listener = far.listen(ServiceId(7)).await.expect("nobody else listens");
            let name = listener.name().clone();
            let (mut streams, mut before) = (Vec::with_capacity(2 * (STREAMS + 10)), 0);
            for number in 0..STREAMS + 10 {
                if number == 10 {
                    before = HELD.bytes();
                }
                let (asked, taken) = tokio::join!(near.connect(&name), listener.accept());
                let (mut asked, mut taken) =
                    (asked.expect("it listens"), taken.expect("a peer asks"));
                asked.write_all(&[1; 3000]).await.expect("the peer is there");
                taken.read_exact(&mut [0; 3000]).await.expect("the peer is there");
                taken.write_all(&[2; 3000]).await.expect("the peer is there");
                asked.read_exact(&mut [0; 3000]).await.expect("the peer is there");
                streams.extend([asked, taken]);
            }
            let each = (HELD.bytes() - before) / (2 * STREAMS as isize);
            println!("{each} bytes for each end of a stream");
            assert!(each <= 16 << 10, "{each} bytes");
        });
    });
}
