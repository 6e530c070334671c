//! The parsers of the greetings, knocks and challenges of endpoints.

use doorbell::am::parsers;

/// What was read of a greeting is written and read again as the same, and is as long as private
/// data may be.
pub fn am_hello(data: &[u8]) {
    let Some(written) = parsers::greeting(data) else { return };
    assert!(written.len() <= 148, "{} bytes", written.len());
    assert_eq!(parsers::greeting(&written).as_ref(), Some(&written));
}
