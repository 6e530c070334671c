//! Agreements: the settings of a queue pair that follow from a REQ and its REP.

use std::time::Duration;

use crate::cm::{Extensions, Reply, Request};
use crate::encap::Path;
use crate::nic::{Change, Connection, Rights, Sending};
use crate::wire::{PathMtu, Pkey, Psn, Qpn};

/// The settings of one side's queue pair that follow from a request and its reply.
///
/// A queue pair needs some settings that the messages do not carry:
///
/// * how long a peer is to wait when no receive is posted: the customary time of
///   [`Connection::new`];
/// * when to acknowledge without being asked, and how much may be unacknowledged: as customary;
/// * which operations the peer may carry out on this side's memory: the program says that.
///
/// Each message carries the packet sequence number that its sender expects: the request says with
/// which number the responder begins, and the reply with which number the requester begins.
///
/// The messages carry a time-out for adapters that don't measure the path. Here it can only shorten
/// the time-out that is used until the path has been measured.
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
/// // A peer that has offered no extension is a standard peer.
/// assert!(asks.sending(Extensions::NONE).ask_each);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Agreement {
    /// The peer's queue pair.
    pub peer: Qpn,
    /// The peer's first packet sequence number.
    pub expected: Psn,
    /// The first packet sequence number of this side.
    pub first: Psn,
    /// The path MTU of the connection.
    pub mtu: PathMtu,
    /// The key of the partition that the connection belongs to.
    pub pkey: Pkey,
    /// The number of reads and atomic operations of the peer that this side serves at a time.
    pub takes: u8,
    /// The number of its own reads and atomic operations that this side may have under way.
    pub asks: u8,
    /// Whether acknowledgements of this side carry end-to-end credits.
    pub credits: bool,
    /// The number of times that this side retries a request which is not acknowledged.
    pub retries: u8,
    /// The number of times that this side retries a request for which the peer has no receive. 7
    /// means for ever.
    pub rnr_retries: u8,
    /// The longest time-out while nothing is known of the path's round trip, if the messages name
    /// one.
    pub timeout: Option<Duration>,
}

impl Agreement {
    /// Returns the settings of the side that sent the request.
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

    /// Returns the settings of the side that received the request: the other side's, with the
    /// directions exchanged.
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

    /// Returns the change to the init state.
    pub fn init(&self, rights: Rights) -> Change {
        Change::Init { rights, pkey: self.pkey }
    }

    /// Returns the settings that make the queue pair ready to receive from a peer with which these
    /// extensions are shared, as [`Asked`](crate::cm::Event::Asked) or
    /// [`Replied`](crate::cm::Event::Replied) tells them.
    pub fn connection(&self, path: Path, extensions: Extensions) -> Connection {
        Connection {
            credits: self.credits,
            reads: self.takes,
            metadata: extensions.include(Extensions::WRITE_WITH_METADATA),
            selective: extensions.include(Extensions::SELECTIVE_REPEAT),
            ..Connection::new(self.peer, path, self.mtu, self.expected)
        }
    }

    /// Returns the settings that make the queue pair ready to send to a peer that has agreed on
    /// these extensions. A peer that has agreed on none is assumed to be a standard peer, which
    /// acknowledges only what it is asked to.
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
            selective: extensions.include(Extensions::SELECTIVE_REPEAT),
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
        // The values of the REQ and the REP that two kernels exchanged in `rping.pcap`.
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
