//! The parsers of the greetings, knocks and challenges of endpoints.

use doorbell_am::parsers;

/// A greeting that was parsed and written again parses as the same, and is no longer than the
/// private data of a connection may be.
pub fn am_hello(data: &[u8]) {
    let Some(written) = parsers::greeting(data) else { return };
    assert!(written.len() <= 148, "{} bytes", written.len());
    assert_eq!(parsers::greeting(&written).as_ref(), Some(&written));
}
