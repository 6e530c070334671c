//! The exchange whose time is broken down.

/// Something that one end asks and the other answers, on one thread.
pub trait Exchange {
    /// Asks once, serves the other end, and takes the answer.
    fn once(&mut self) -> anyhow::Result<()>;
}
