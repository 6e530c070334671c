//! What the fuzz target of shared memory looks at: messages of those who share an interface.

use super::message;

/// A message of those who share as it would be written, if these bytes are one.
pub fn sharing_message_again(bytes: &[u8]) -> Option<Vec<u8>> {
    let (tag, services) = message::read(bytes)?;
    Some(message::write(tag, services.as_ref()))
}
