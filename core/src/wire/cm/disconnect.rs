//! Ending a connection: DREQ, answered by DREP.

use super::layout::layout;
use super::private_data::PrivateData;
use crate::wire::numbers::{CommId, Qpn};

layout! {
    /// The request to end a connection; either side may send it.
    pub struct Dreq<'a> {
        /// The sender's name for the connection.
        local: CommId;
        /// The receiver's name for it.
        remote: CommId;
        /// The receiver's queue pair.
        remote_qpn: Qpn, reserved 8;
        /// What the sender's program has to say.
        private: PrivateData<'a, { Dreq::PRIVATE_DATA }>;
    }
}

impl Dreq<'_> {
    /// How many bytes of private data there is room for.
    pub const PRIVATE_DATA: usize = 220;
}

layout! {
    /// The answer: the connection is ended.
    pub struct Drep<'a> {
        /// The sender's name for the connection.
        local: CommId;
        /// The receiver's name for it.
        remote: CommId;
        /// What the sender's program has to say.
        private: PrivateData<'a, { Drep::PRIVATE_DATA }>;
    }
}

impl Drep<'_> {
    /// How many bytes of private data there is room for.
    pub const PRIVATE_DATA: usize = 224;
}
