//! The whole NIC, given whatever peers, programs and a device may do.
//!
//! The input is a list of actions. Many are packets, most of which a peer could have sent: the
//! right addresses, an ICRC that holds, a sequence number near the one that is expected; the rest
//! is wrong in every way. In between time passes, programs post, ring and poll, the device is now
//! and then full, and queue pairs are told to change, taken down and made again.
//!
//! What is checked after each action:
//!
//! - Memory holds what it held, but where a peer or a receive may write; revoked memory for good.
//! - Only the packet that is expected is taken, and by the right peer's way only. Over a link of a
//!   lossless device, somebody is told of every other.
//! - A completion is of a request that was posted, comes once, and in the order of its queue.
//! - A turn sends no more than the windows and one answer for each queue pair.
//!
//! In the end everything is told to stop, and all that was posted has come to an end.

mod ledger;
mod memory;
mod packets;
mod port;
mod world;

use super::input::Input;

use world::World;

/// A NIC with queue pairs in every state, and what happens to it.
pub fn nic(data: &[u8]) {
    let mut input = Input(data);
    let mut world = World::new(input.u8());
    while !input.is_empty() {
        world.act(&mut input);
        world.memory.check();
    }
    world.end();
}
