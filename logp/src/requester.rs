//! The side of a connection that a measurement drives.

/// An end of a connection that sends requests, each of which the other end answers.
pub trait Requester {
    /// The reason why a request can't be sent, or answers can't be taken.
    type Error;

    /// Sends a request with `bytes` bytes of payload, and returns as soon as the processor is free.
    /// If no more requests may be under way, this waits until there is room. Answers that have come
    /// may be handled, and need not be.
    ///
    /// # Errors
    /// When the connection has failed. The measurement ends.
    fn send(&mut self, bytes: usize) -> Result<(), Self::Error>;

    /// Handles the answers that have come, without waiting for more.
    ///
    /// # Errors
    /// When the connection has failed. The measurement ends.
    fn poll(&mut self) -> Result<(), Self::Error>;

    /// The number of answers that were handled since the beginning.
    fn answered(&self) -> u64;
}
