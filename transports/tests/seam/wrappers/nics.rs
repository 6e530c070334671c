//! Two NICs over devices of any kind, and what they say to each other.

use std::time::Duration;

use doorbell_core::memory::Buf;
use doorbell_core::nic::{Memory, WorkRequest};
use doorbell_kit::joined;
use doorbell_transports::Device;

/// How long a test may take: it only ends one that hangs.
const PATIENCE: Duration = Duration::from_secs(60);

/// What the message of a number says: some are empty, some take several packets.
fn text(number: u64) -> Vec<u8> {
    format!("message {number:04} ").repeat((number * number % 1000) as usize).into_bytes()
}

/// Sends so many messages from one NIC to the other, of which each must arrive once, whole and in
/// order; gives the devices back.
pub fn exchange<A: Device, B: Device>(one: A, other: B, messages: u64) -> (A, B) {
    let (mut one, mut other) = joined(one, other);
    let (mut posted, mut sent, mut received) = (0, 0, 0);
    let mut lent = 0;
    let began = std::time::Instant::now();
    while sent < messages || received < messages {
        assert!(began.elapsed() < PATIENCE, "{sent} of {messages} sent, {received} received");
        while lent < messages.min(received + 32) {
            other.receive(lent, 16 << 10);
            lent += 1;
        }
        while posted < lent.min(sent + 16) {
            one.post(WorkRequest::send(posted, Buf::from(text(posted))));
            posted += 1;
        }
        one.turn();
        other.turn();
        while let Some(done) = one.queue.poll() {
            assert_eq!((done.id, done.outcome.is_ok()), (sent, true), "{done:?}");
            sent += 1;
        }
        while let Some(done) = other.queue.poll() {
            assert_eq!((done.id, done.outcome.is_ok()), (received, true), "{done:?}");
            let Memory::Buf(found) = &done.memory else { panic!("{done:?}") };
            assert_eq!(**found, text(received));
            received += 1;
        }
    }
    (one.device, other.device)
}
