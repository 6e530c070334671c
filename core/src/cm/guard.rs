//! What keeps others than the peer from ending a connection whose packets are encrypted.

use std::fmt;

/// The message that ends a connection, or confirms that.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Ending {
    /// The request to end the connection (DREQ).
    Request,
    /// The confirmation that the connection is ended (DREP).
    Confirmation,
}

/// Seals and opens the private data of messages that end a connection. Its keys are those of the
/// connection, which the two sides alone know.
pub trait Guard: fmt::Debug + Send {
    /// Seals the private data of a message. What is returned goes into the message as its private
    /// data, followed by zeros.
    fn seal(&mut self, message: Ending, private: &[u8]) -> Vec<u8>;

    /// Opens the private data of a message, with the zeros behind it. Returns what was sealed, if the
    /// peer has sealed it for such a message.
    fn open(&self, message: Ending, sealed: &[u8]) -> Option<Vec<u8>>;
}
