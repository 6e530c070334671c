//! The whole NIC, given whatever peers, programs and a device may do.
//!
//! The input is a list of actions. Many are packets, most of which a peer could have sent: the
//! right addresses, an ICRC that holds, the sequence number that is expected, the next part of the
//! message that was begun, a key and a place that are good; the rest is wrong in every way. What a
//! queue pair asks for is answered, rightly and wrongly. In between time passes, programs post,
//! ring and poll, keys are taken back and renewed, the device is now and then full, and queue pairs
//! are told to change, led elsewhere, taken down and made again. There are reliable connections,
//! one unreliable, and a queue pair for datagrams; some share their receives, some their host.
//!
//! The first byte chooses what all of it has in common. With its bit 6, reliable connections share
//! selective repeat: then more packets come from beyond gaps, and peers say which packets they
//! keep, sent or not, within the window or beyond.
//!
//! What is checked after each action:
//!
//! - Memory holds exactly what it must: what peers wrote, swapped and added where they may, and
//!   anything only where an outstanding receive or read was to put it. Revoked memory stays.
//! - Only the packet that is expected is taken, and by the right peer's way only. Over a link of a
//!   lossless device, somebody is told of every other.
//! - With selective repeat, a packet from beyond a gap is kept if there is room, in memory of a
//!   fixed bound, and changes nothing until those before it have come. Acknowledgements name all
//!   that is kept, and nothing else. What a peer keeps does not complete.
//! - What is answered to a read is what the memory holds, and the key allows it at that moment; to
//!   an atomic operation, what it found.
//! - A completion is of a request that was posted, comes once, and in the order of its queue. It
//!   tells of the message that arrived; or of what the peer answered to just that request.
//! - What is acknowledged has come; a gap is refused once. A fenced request waits for the answers
//!   to those before it.
//! - A turn sends no more than the windows, the answers that are owed and one acknowledgement for
//!   each queue pair. No more datagrams wait for a manager than may.
//! - A queue pair tells of its last receive from a shared queue once.
//!
//! In the end everything is told to stop, and all that was posted has come to an end, but for the
//! receives that nobody has taken from the shared queue.
//!
//! | file | idea |
//! |---|---|
//! | `world` | the NIC with all that is checked, and the choice of the next action |
//! | `paths`, `pair`, `pairs` | addresses of the peers; a queue pair; changes of queue pairs |
//! | `packets`, `reports`, `arrivals` | packets of peers; what they report; how all come to the NIC |
//! | `judge`, `selective` | checks of a packet's effect; the same with selective repeat |
//! | `memory`, `ledger` | expected memory; posted requests |
//! | `posts`, `port`, `lines` | posted requests; packets that leave; requests without an answer |
//! | `managers`, `management_queues` | management datagrams of queue pair 1 |
//! | `events`, `event_record` | asynchronous events |

mod arrivals;
mod event_record;
mod events;
mod judge;
mod ledger;
mod lines;
mod management_queues;
mod managers;
mod memory;
mod packets;
mod pair;
mod pairs;
mod paths;
mod port;
mod posts;
mod reports;
mod selective;
mod world;

use super::input::Input;

use world::World;

/// A NIC with queue pairs in every state, and what happens to it.
pub fn nic(data: &[u8]) {
    let mut input = Input(data);
    let mut world = World::new(input.u8());
    while !input.is_empty() {
        world.act(&mut input);
        world.check();
    }
    world.end();
}
