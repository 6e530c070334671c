//! Queue pairs, taken from one state to the next.

use doorbell_core::nic::{Change, Connection, Nic, Rights, Sending};
use doorbell_core::wire::{Pkey, Qpn};

/// Takes a queue pair from the reset state to ready to send.
///
/// # Panics
/// When the queue pair is not in the reset state.
pub fn ready(nic: &mut Nic, qpn: Qpn, connection: Connection, sending: Sending) {
    let init = Change::Init { rights: Rights::REMOTE, pkey: Pkey::DEFAULT };
    let connection = Change::ReadyToReceive(Box::new(connection));
    for change in [init, connection, Change::ReadyToSend(sending)] {
        nic.change(qpn, change).expect("a queue pair in the reset state");
    }
}
