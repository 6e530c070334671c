//! Whether peers are still there.

use crate::encap::Path;
use crate::nic::adapter::nic::{Nic, find};
use crate::nic::identifiers::PeerId;
use crate::nic::keep_alive::peers::{KeepAliveStep, SuspicionReason};
use crate::nic::requests::failure::Cause;
use crate::nic::state::common::Common;
use crate::nic::state::queue_pair::{Blamed, QueuePair};
use crate::planted::{Bug, planted};
use crate::wire::Qpn;

/// Asks a peer that was silent whether it is there, or breaks all connections to it.
#[cold]
pub(crate) fn look_after(host: PeerId, pairs: &mut [Option<Box<QueuePair>>], common: &mut Common) {
    let again = match common.peers.next_step(host, common.now, &common.clock_jumps) {
        KeepAliveStep::Wait(until) => until,
        KeepAliveStep::Ask(speaker, again) => {
            // Whoever heard of it last, and then the others in turn: the peer of one may have gone,
            // and not its whole process.
            let (before, from) = pairs.split_at_mut(speaker as usize);
            let mut others = from.iter_mut().chain(before).flatten();
            let asks = others.find(|pair| pair.peer_id == host && pair.state.requests());
            if let Some(pair) = asks.filter(|_| !planted(Bug::AsksNobody)) {
                pair.responder.keep_alive_due = true;
                common.peers.asked_by(host, pair.shared.place);
                common.list_owing(pair);
            }
            again
        }
        KeepAliveStep::Gone(limit) => {
            let cause = Cause::peer_silent(&common.peers.limits, limit);
            for pair in pairs.iter_mut().flatten().filter(|pair| pair.peer_id == host) {
                pair.break_with(cause, Blamed::Request(0), common);
            }
            return;
        }
        KeepAliveStep::Nobody => return,
    };
    common.timers.arm(host.timer(), again);
}

impl Nic {
    /// Has the peers asked whether they are there that a newcomer at the end of a path can have
    /// replaced: those at its host whose queue pair numbers bear the same [tag](Numbering::tag) as
    /// the newcomer's queue pair, since no two living processes of an interface share one. A peer
    /// that gives no sign of life within [`KeepAlive::busy`] is gone, and all connections to it
    /// break. Until then it is asked sixteen times, as by a [probe](Self::probe). However often
    /// this is called, a peer that answers is asked once in that time. What one peer there says
    /// does not count for another, as far as their GUIDs are [known](Connection::peer_guid).
    ///
    /// Peers of other tags are other processes, which the newcomer leaves alone: one that is
    /// stopped while nothing is under way to it keeps its connections for [`KeepAlive::idle`].
    ///
    /// Nothing is done on a lossless device, which tells itself when a peer has gone.
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

    /// Demands a sign of life from the peer of a reliable connection: the peer is asked whether it
    /// is there, sixteen times within [`KeepAlive::busy`](crate::nic::KeepAlive::busy), and if nothing
    /// at all comes by this queue pair until then, the connection breaks with
    /// [`Cause::PeerSilent`](crate::nic::Cause::PeerSilent).
    ///
    /// This is for a program that waits for something that only the peer's program can send: the
    /// peer's NIC has acknowledged the request, so nothing is under way, and the peer would be
    /// missed only after [`KeepAlive::idle`](crate::nic::KeepAlive::idle). To probe again while a probe
    /// is under way changes nothing. A probe costs about a packet each way if the peer is there,
    /// and nothing on the way of messages.
    ///
    /// Nothing is done for a queue pair that is not there, is not ready to send, or is not a
    /// reliable connection; nor on a lossless device, which tells itself when a peer has ended.
    #[cold]
    pub fn probe(&mut self, qpn: Qpn) {
        let Self { common, pairs, numbers, .. } = self;
        if let Some(pair) = find(pairs, *numbers, qpn) {
            pair.probe(common);
        }
    }
}
