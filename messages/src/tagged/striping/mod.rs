//! Messages to one peer over several connections, in one order, and none lost with a connection.
//!
//! Each message has a sequence number. The sender keeps a message until the receiver has
//! acknowledged it, and sends it again by another connection if the one that carried it ends. The
//! receiver puts messages into their order, and drops those that come again.
//!
//! The folder is bookkeeping: [`Sent`] at the sender, and [`Ordered`] at the receiver.

mod receiver;
mod sender;
#[cfg(test)]
mod tests;

pub use receiver::Ordered;
pub use sender::Sent;
