//! Keep-alive and probes: whether peers are still there.

use crate::encap::Path;
use crate::nic::adapter::nic::{Nic, find};
use crate::nic::identifiers::PeerId;
use crate::nic::keep_alive::peers::{KeepAliveStep, SuspicionReason};
use crate::nic::requests::failure::Cause;
use crate::nic::state::common::Common;
use crate::nic::state::queue_pair::{Blamed, QueuePair};
use crate::planted::{Bug, planted};
use crate::wire::Qpn;

/// Asks a peer that was silent for a sign of life, or breaks all connections to it.
#[cold]
pub(crate) fn look_after_peer(
    peer: PeerId,
    pairs: &mut [Option<Box<QueuePair>>],
    common: &mut Common,
) {
    let again = match common.peers.next_step(peer, common.now, &common.clock_jumps) {
        KeepAliveStep::Wait(until) => until,
        KeepAliveStep::Ask(ask_from, again) => {
            // The queue pair by which something last came is asked first, and then the others in
            // turn: the peer of one queue pair may have gone, and not its whole process.
            let (before, from) = pairs.split_at_mut(ask_from as usize);
            let mut others = from.iter_mut().chain(before).flatten();
            let asking = others.find(|pair| pair.peer_id == peer && pair.state.requests());
            if let Some(pair) = asking.filter(|_| !planted(Bug::AsksNobody)) {
                pair.responder.keep_alive_due = true;
                common.peers.asked_by(peer, pair.shared.place);
                common.list_owing(pair);
            }
            again
        }
        KeepAliveStep::Gone(limit) => {
            let cause = Cause::peer_silent(&common.peers.limits, limit);
            for pair in pairs.iter_mut().flatten().filter(|pair| pair.peer_id == peer) {
                pair.break_with(cause, Blamed::Request(0), common);
            }
            return;
        }
        KeepAliveStep::Nobody => return,
    };
    common.timers.arm(peer.timer(), again);
}

impl Nic {
    /// Asks those peers for a sign of life that a newcomer at the end of a path can have replaced:
    /// those at its host whose queue pair numbers bear the same [tag](crate::nic::Numbering::tag)
    /// as the newcomer's queue pair, since no two living processes of an interface share a tag. A
    /// peer that gives no sign of life within [`KeepAlive::busy`](crate::nic::KeepAlive::busy) is
    /// gone, and all connections to it break. Until then it is asked sixteen times, as by a
    /// [probe](Self::probe). However often this is called, a peer that answers is asked once in
    /// that time. What one peer there sends does not count for another, as far as their GUIDs are
    /// [known](crate::nic::Connection::peer_guid).
    ///
    /// Peers of other tags are other processes, which the newcomer leaves alone: one that is
    /// stopped while nothing is under way to it keeps its connections for
    /// [`KeepAlive::idle`](crate::nic::KeepAlive::idle).
    ///
    /// Nothing is done on a lossless device, which itself reports that a peer has gone.
    pub fn suspect(&mut self, path: &Path, newcomer: Qpn) {
        let Self { common, numbers, .. } = self;
        if common.lossless {
            return;
        }
        let (_, host) = path.outer().hosts();
        let replaced = |peer| numbers.same_process(peer, newcomer);
        for (peer, at) in
            common.peers.suspect(host, SuspicionReason::Replaced, replaced, common.now)
        {
            common.timers.arm(peer.timer(), at);
        }
    }

    /// Demands a sign of life from the peer of a reliable connection: the peer is asked sixteen
    /// times within [`KeepAlive::busy`](crate::nic::KeepAlive::busy), and if nothing at all comes
    /// to this queue pair until then, the connection breaks with
    /// [`Cause::PeerSilent`](crate::nic::Cause::PeerSilent).
    ///
    /// This is for a program that waits for something that only the peer's program can send: the
    /// peer's NIC has acknowledged the request, so nothing is under way, and the peer would be
    /// missed only after [`KeepAlive::idle`](crate::nic::KeepAlive::idle). To probe again while a
    /// probe is under way changes nothing. A probe costs about a packet each way if the peer is
    /// there, and nothing on the path of messages.
    ///
    /// Nothing is done for a queue pair that does not exist, is not ready to send, or is not a
    /// reliable connection; nor on a lossless device, which itself reports that a peer has ended.
    #[cold]
    pub fn probe(&mut self, qpn: Qpn) {
        let Self { common, pairs, numbers, .. } = self;
        if let Some(pair) = find(pairs, *numbers, qpn) {
            pair.probe(common);
        }
    }
}
