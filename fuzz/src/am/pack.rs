//! The parser of a send that several messages of Active Messages share.

use doorbell_am::parsers;

/// The messages of a send follow each other, and lie within it with their words and payloads.
pub fn am_pack(data: &[u8]) {
    let mut at = 0;
    while let Some(found) = parsers::message(data, at) {
        let within = at < found.data.start && found.data.start <= found.data.end;
        assert!(within && found.data.end <= found.next && found.next <= data.len(), "{found:?}");
        assert!(8 * found.words <= found.data.len(), "{found:?}");
        // What a message has is there, and nothing is between it and the next but zeros' room.
        assert!(found.next - found.data.end < 8, "{found:?}");
        at = found.next;
    }
    // Wherever somebody begins to read.
    for at in [data.len().saturating_sub(1), data.len(), data.len() + 1] {
        if let Some(found) = parsers::message(data, at) {
            assert!(found.next <= data.len(), "{found:?}");
        }
    }
}
