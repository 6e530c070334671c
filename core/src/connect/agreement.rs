//! What two managers agreed upon, as one of the queue pairs must know it.

use std::time::Duration;

use crate::cm::{Extensions, Reply, Request};
use crate::encap::Path;
use crate::nic::{Change, Connection, Rights, Sending};
use crate::wire::{PathMtu, Pkey, Psn, Qpn};

/// What a request and the reply to it mean for one side's queue pair.
///
/// Of what a queue pair must know, the messages do not carry
///
/// * how long a peer is to wait when no receive is posted: the customary time of
///   [`Connection::new`];
/// * when to acknowledge unasked, and how much may be unacknowledged: as customary;
/// * what the peer may do with this side's memory: that is for the program to say.
///
/// Of sequence numbers they carry those that each side expects: the request says with which one the
/// responder begins, and the reply with which one the requester does.
///
/// They carry a time-out for adapters that know no other. Here it only shortens the one that is
/// used until something is known of the path.
///
/// ```
/// use doorbell_core::cm::{Extensions, Reply, Request};
/// use doorbell_core::connect::Agreement;
/// use doorbell_core::wire::cm::{InitiatorDepth, ResponderResources};
/// use doorbell_core::wire::{Gid, Psn, Qpn, ServiceId};
///
/// let (from, to) = (Gid::default(), Gid::default());
/// let request = Request {
///     initiator_depth: InitiatorDepth(9),
///     responder_resources: ResponderResources(2),
///     ..Request::new(ServiceId(7), Qpn::new(0x15), Psn::new(3), from, to)
/// };
/// let reply = Reply::to(&request, Qpn::new(0x16), Psn::new(4), 4);
/// let [asks, answers] =
///     [Agreement::requesters(&request, &reply), Agreement::responders(&request, &reply)];
/// assert_eq!((asks.peer, answers.peer), (Qpn::new(0x16), Qpn::new(0x15)));
/// assert_eq!((asks.asks, answers.takes), (4, 4));
/// assert_eq!((asks.takes, answers.asks), (2, 2));
/// // A peer that has offered no extension is a standard one.
/// assert!(asks.sending(Extensions::NONE).ask_each);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Agreement {
    /// The peer's queue pair.
    pub peer: Qpn,
    /// The peer's first sequence number.
    pub expected: Psn,
    /// This side's first sequence number.
    pub first: Psn,
    /// The most payload that a packet carries.
    pub mtu: PathMtu,
    /// The partition.
    pub pkey: Pkey,
    /// How many reads and atomic operations of the peer's this side takes at a time.
    pub takes: u8,
    /// How many of its own it may have under way.
    pub asks: u8,
    /// Whether it says how many receives are posted.
    pub credits: bool,
    /// How often it sends again what is not answered.
    pub retries: u8,
    /// How often it comes back to a peer without receives; 7 is for ever.
    pub rnr_retries: u8,
    /// The longest to wait for an answer as long as nothing is known of the path, if the messages
    /// say so.
    pub timeout: Option<Duration>,
}

impl Agreement {
    /// That of the side which asked.
    pub fn requesters(request: &Request, reply: &Reply) -> Self {
        Self {
            peer: reply.qpn,
            expected: request.psn,
            first: reply.psn,
            mtu: request.mtu,
            pkey: request.pkey,
            takes: request.responder_resources.0.min(reply.initiator_depth.0),
            asks: request.initiator_depth.0.min(reply.responder_resources.0),
            credits: request.flow_control && !request.srq,
            retries: request.retry_count.get(),
            rnr_retries: reply.rnr_retry_count.get(),
            timeout: request.path.ack_timeout.duration(),
        }
    }

    /// That of the side which was asked: the other's, turned around.
    pub fn responders(request: &Request, reply: &Reply) -> Self {
        let other = Self::requesters(request, reply);
        Self {
            peer: request.qpn,
            expected: other.first,
            first: other.expected,
            takes: other.asks,
            asks: other.takes,
            credits: reply.flow_control && !reply.srq,
            rnr_retries: request.rnr_retry_count.get(),
            ..other
        }
    }

    /// The change to the init state.
    pub fn init(&self, rights: Rights) -> Change {
        Change::Init { rights, pkey: self.pkey }
    }

    /// What the queue pair must know to be ready to receive, from a peer with which these
    /// extensions are shared: those that [`Asked`](crate::cm::Event::Asked) or
    /// [`Replied`](crate::cm::Event::Replied) tells of.
    pub fn connection(&self, path: Path, extensions: Extensions) -> Connection {
        Connection {
            credits: self.credits,
            reads: self.takes,
            metadata: extensions.include(Extensions::WRITE_WITH_METADATA),
            ..Connection::new(self.peer, path, self.mtu, self.expected)
        }
    }

    /// What it must know to be ready to send, to a peer that has agreed upon these extensions. One
    /// that has agreed upon none is taken for a standard peer, which acknowledges what it is asked
    /// to.
    pub fn sending(&self, extensions: Extensions) -> Sending {
        let customary = match extensions.is_empty() {
            true => Sending::to_standard_peer(self.first),
            false => Sending::new(self.first),
        };
        Sending {
            timeout: self.timeout.map_or(customary.timeout, |most| customary.timeout.min(most)),
            retries: self.retries,
            rnr_retries: self.rnr_retries,
            reads: self.asks,
            metadata: extensions.include(Extensions::WRITE_WITH_METADATA),
            ..customary
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encap::PathId;
    use crate::wire::cm::{
        AckTimeout, InitiatorDepth, ResponderResources, RetryCount, RnrRetryCount,
    };
    use crate::wire::{Gid, ServiceId};

    fn terms() -> (Request, Reply) {
        let (from, to) = (Gid([1; 16]), Gid([2; 16]));
        let request = Request {
            mtu: PathMtu::Mtu2048,
            pkey: Pkey(0x8123),
            responder_resources: ResponderResources(5),
            initiator_depth: InitiatorDepth(6),
            retry_count: RetryCount::new(3),
            rnr_retry_count: RnrRetryCount::new(2),
            flow_control: true,
            ..Request::new(ServiceId(7), Qpn::new(0x15), Psn::new(30), from, to)
        };
        let reply = Reply {
            rnr_retry_count: RnrRetryCount::new(1),
            ..Reply::to(&request, Qpn::new(0x16), Psn::new(40), 16)
        };
        (request, reply)
    }

    #[test]
    fn each_side_has_what_the_other_said() {
        let (request, reply) = terms();
        let path = || Path::link(PathId(3));
        let asked = Agreement::requesters(&request, &reply);
        let to = asked.connection(path(), Extensions::NONE);
        assert_eq!((to.peer, to.expected, to.mtu), (reply.qpn, request.psn, PathMtu::Mtu2048));
        assert_eq!((to.reads, to.credits), (5, true));
        let sends = asked.sending(Extensions::NONE);
        assert_eq!((sends.first, sends.reads), (reply.psn, 6));
        assert_eq!((sends.retries, sends.rnr_retries), (3, 1));

        let took = Agreement::responders(&request, &reply);
        let to = took.connection(path(), Extensions::NONE);
        assert_eq!((to.peer, to.expected, to.mtu), (request.qpn, reply.psn, PathMtu::Mtu2048));
        assert_eq!((to.reads, to.credits), (6, false), "the reply says that it counts none");
        let sends = took.sending(Extensions::NONE);
        assert_eq!((sends.first, sends.reads), (request.psn, 5));
        assert_eq!((sends.retries, sends.rnr_retries), (3, 2));
        for side in [asked, took] {
            let Change::Init { pkey, .. } = side.init(Rights::REMOTE) else { panic!() };
            assert_eq!(pkey, request.pkey);
        }
    }

    /// Each side once began with the number that it had named itself, and expected the other's;
    /// with a standard peer no packet of either was taken.
    #[test]
    fn each_side_begins_with_the_number_that_the_other_expects() {
        // As two kernels did in `rping.pcap`: these are REQ's and REP's.
        let (request, reply) = terms();
        let request = Request { psn: Psn::new(0xEB_5F9C), ..request };
        let reply = Reply { psn: Psn::new(0x31_0E52), ..reply };
        let [asked, took] =
            [Agreement::requesters(&request, &reply), Agreement::responders(&request, &reply)];
        assert_eq!((asked.first.get(), took.first.get()), (3_214_930, 15_425_436));
        assert_eq!((asked.expected, took.expected), (took.first, asked.first));
    }

    #[test]
    fn a_peer_that_answers_more_than_it_was_asked_is_not_followed() {
        let (request, reply) = terms();
        let reply = Reply {
            responder_resources: ResponderResources(200),
            initiator_depth: InitiatorDepth(200),
            ..reply
        };
        let asked = Agreement::requesters(&request, &reply);
        assert_eq!((asked.takes, asked.asks), (5, 6));
    }

    #[test]
    fn without_extensions_a_peer_is_a_standard_one() {
        let (request, reply) = terms();
        let side = Agreement::requesters(&request, &reply);
        let [standard, kin] = [Extensions::NONE, Extensions::WRITE_WITH_METADATA];
        assert_eq!(
            (side.sending(standard).ask_each, side.sending(standard).metadata),
            (true, false)
        );
        assert_eq!((side.sending(kin).ask_each, side.sending(kin).metadata), (false, true));
        let takes = |extensions| side.connection(Path::link(PathId(3)), extensions).metadata;
        assert_eq!((takes(standard), takes(kin)), (false, true));
    }

    #[test]
    fn who_shares_its_receives_counts_none() {
        let (mut request, mut reply) = terms();
        reply.flow_control = true;
        let counts = |request: &Request, reply: &Reply| {
            [Agreement::requesters(request, reply), Agreement::responders(request, reply)]
                .map(|side| side.credits)
        };
        assert_eq!(counts(&request, &reply), [true, true]);
        (request.srq, reply.srq) = (true, true);
        assert_eq!(counts(&request, &reply), [false, false]);
    }

    #[test]
    fn a_time_out_only_shortens_the_first_one() {
        let (mut request, reply) = terms();
        let mut first = |code| {
            request.path.ack_timeout = AckTimeout::new(code);
            Agreement::requesters(&request, &reply).sending(Extensions::NONE).timeout
        };
        let customary = Sending::new(Psn::new(0)).timeout;
        assert_eq!((first(0), first(17)), (customary, customary));
        assert_eq!(first(8), Duration::from_nanos(4096 << 8));
    }
}
