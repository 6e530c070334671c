//! The messages that release a connection: DREQ, and its reply DREP.

use super::layout::layout;
use super::private_data::PrivateData;
use crate::wire::numbers::{CommId, Qpn};

layout! {
    /// DREQ, the request to end a connection, which either side may send.
    pub struct Dreq<'a> {
        /// The sender's communication ID.
        local: CommId;
        /// The receiver's communication ID.
        remote: CommId;
        /// The receiver's queue pair.
        remote_qpn: Qpn, reserved 8;
        /// The private data of the sender's program.
        private: PrivateData<'a, { Dreq::PRIVATE_DATA }>;
    }
}

impl Dreq<'_> {
    /// The bytes of private data that a DREQ has room for.
    pub const PRIVATE_DATA: usize = 220;
}

layout! {
    /// DREP, the reply that confirms the end of a connection.
    pub struct Drep<'a> {
        /// The sender's communication ID.
        local: CommId;
        /// The receiver's communication ID.
        remote: CommId;
        /// The private data of the sender's program.
        private: PrivateData<'a, { Drep::PRIVATE_DATA }>;
    }
}

impl Drep<'_> {
    /// The bytes of private data that a DREP has room for.
    pub const PRIVATE_DATA: usize = 224;
}
