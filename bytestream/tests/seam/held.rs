//! What a stream holds of a peer that sends its window in the shortest messages.

use doorbell_bytestream::{Config, Endpoint, ServiceId};
use doorbell_kit::child;
use doorbell_verbs::{Buf, Name, Nic, QueuePairConfig, work};
use tokio::io::AsyncReadExt;
use tokio::runtime::Builder;

use crate::HELD;

const SERVICE: ServiceId = ServiceId(7);
const WINDOW: usize = 4 << 10;
const SEGMENT: usize = 256;

/// A message of a byte is received in a buffer of a segment. If it stayed there, the window would
/// take a mebibyte.
#[test]
fn a_window_of_messages_of_a_byte_takes_twice_its_bytes_at_most_and_no_more_come() {
    child::alone(|| {
        Builder::new_current_thread().enable_all().build().expect("a runtime").block_on(async {
            let nic = || Nic::builder().open_blocking("shm").expect("a device");
            let (near, far) = (nic(), nic());
            let config = Config { window: WINDOW, segment: SEGMENT, ..Config::default() };
            let endpoint = Endpoint::builder().config(config.clone()).on(&far).await.expect("room");
            let mut listener = endpoint.listen(SERVICE).await.expect("nobody else listens");

            let pair = near.domain().queue_pair(&QueuePairConfig::default()).expect("room");
            for _ in 0..16 {
                pair.post_receive(Buf::with_capacity(SEGMENT)).expect("room");
            }
            // That this side takes 64 KiB, in messages of 256 bytes, by version 2 of the protocol.
            let hello = b"DB-BYTES\0\x02\0\x01\0\0\0\0\x01\0";
            let address = far.address().to_string();
            let (asked, taken) = tokio::join!(
                pair.connect(Name::at(&*address, SERVICE.0), hello),
                listener.accept()
            );
            let ((pair, _), mut stream) = (asked.expect("it listens"), taken.expect("a peer asks"));

            let sends = async || pair.perform(work::Send::new(b"x").awaited()).await;
            // By now each side has what it needs to go on.
            for _ in 0..100 {
                sends().await.expect("the stream takes it");
            }
            let before = HELD.bytes();
            for _ in 100..WINDOW {
                sends().await.expect("the stream takes it");
            }
            let held = HELD.bytes() - before;
            // A few kibibytes are what both sides take to go on.
            let most = 2 * (WINDOW + SEGMENT) as isize + (8 << 10);
            assert!(held <= most, "{held} bytes are held of {WINDOW}");

            // The program has read nothing, so there is no room for another byte.
            let _ = sends().await;
            let mut found = Vec::new();
            let why = stream.read_to_end(&mut found).await.expect_err("the peer has sent too much");
            assert_eq!(found, vec![b'x'; WINDOW]);
            assert!(
                why.to_string().contains("of 1 bytes while its window had room for 0"),
                "{why}"
            );
        });
    });
}
