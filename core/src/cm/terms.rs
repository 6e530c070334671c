//! The terms of a connection: what a REQ proposes, and what the REP adds.

use std::time::Duration;

use crate::wire::cm::{
    AckDelay, AckTimeout, CmPort, CmRetries, CmTimeout, Failover, HopLimit, InitiatorDepth, IpCm,
    Path, PrivateData, RejectReason, Rep, Req, ResponderResources, RetryCount, RnrRetryCount,
    TooLong, TransportService,
};
use crate::wire::{CaGuid, CommId, Gid, Lid, PathMtu, Pkey, Psn, Qpn, ServiceId};

use super::extensions::{Extensions, offer, offered};

/// The terms that a requester proposes in its REQ. The responder accepts them as they are, or
/// rejects the request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    /// The service that is requested.
    pub service: ServiceId,
    /// The requester's queue pair.
    pub qpn: Qpn,
    /// The packet sequence number of the first packet that the requester expects, and that the
    /// responder therefore begins with.
    pub psn: Psn,
    /// The kind of connection, reliable or unreliable.
    pub transport: TransportService,
    /// The path MTU, which is the most payload that a packet carries.
    pub mtu: PathMtu,
    /// The key of the partition that the connection belongs to.
    pub pkey: Pkey,
    /// How many reads and atomic operations of the responder the requester serves at a time.
    pub responder_resources: ResponderResources,
    /// The most reads and atomic operations that the requester will have under way.
    pub initiator_depth: InitiatorDepth,
    /// How often the responder is to retry a request that is not acknowledged.
    pub retry_count: RetryCount,
    /// How often the responder is to retry a request that found no receive posted.
    pub rnr_retry_count: RnrRetryCount,
    /// Whether the requester supports end-to-end flow control.
    pub flow_control: bool,
    /// Whether the requester's queue pair uses a shared receive queue.
    pub srq: bool,
    /// The primary path between the two ports, with the requester's local ACK time-out.
    pub path: Path,
    /// IP ports and addresses in the form of `rdma_cm`: present exactly if the service is a port.
    pub addressing: Option<IpCm>,
    /// The remote CM response time-out: how long the responder's manager may take to answer.
    pub remote_timeout: CmTimeout,
    /// The local CM response time-out: how long the requester's manager may take to answer.
    pub local_timeout: CmTimeout,
    /// How often either manager repeats a message before it gives up.
    pub retries: CmRetries,
}

impl Request {
    /// Returns a request on customary terms: a reliable connection, packets of 1024 bytes, 7
    /// retries, no reads and no atomic operations. The peer's manager has 268 ms to answer, and the
    /// request is repeated 15 times, so it is given up after 4.3 s.
    pub fn new(service: ServiceId, qpn: Qpn, psn: Psn, from: Gid, to: Gid) -> Self {
        let path = Path {
            local_lid: Lid::PERMISSIVE,
            remote_lid: Lid::PERMISSIVE,
            local_gid: from,
            remote_gid: to,
            hop_limit: HopLimit(64),
            ack_timeout: AckTimeout::new(17),
            ..Path::default()
        };
        Self {
            service,
            qpn,
            psn,
            transport: TransportService::RELIABLE,
            mtu: PathMtu::Mtu1024,
            pkey: Pkey::DEFAULT,
            responder_resources: ResponderResources(0),
            initiator_depth: InitiatorDepth(0),
            retry_count: RetryCount::MAX,
            rnr_retry_count: RnrRetryCount::INFINITE,
            flow_control: false,
            srq: false,
            path,
            addressing: None,
            remote_timeout: CmTimeout::new(16),
            local_timeout: CmTimeout::new(16),
            retries: CmRetries::MAX,
        }
    }

    /// Sets both CM response time-outs and the number of repetitions, so that the request is given
    /// up about `total` after it was first sent, if no answer comes.
    ///
    /// The wire can express a time-out of 4.096 µs times a power of two, and up to 15 repetitions.
    /// The shortest time-out is chosen with which these cover `total`, so the whole may take up to
    /// one time-out longer.
    #[must_use]
    pub fn within(self, total: Duration) -> Self {
        let said = u32::from(CmRetries::MAX.get()) + 1;
        let timeout = CmTimeout::at_least(total / said);
        let times = total.as_nanos().div_ceil(timeout.duration().as_nanos()).clamp(1, said.into());
        let retries = CmRetries::new(times as u8 - 1);
        Self { remote_timeout: timeout, local_timeout: timeout, retries, ..self }
    }

    /// Returns a request in the form of `rdma_cm`, for a port, between two IP addresses. The other
    /// terms are those of [`new`](Self::new).
    pub fn to_port(port: CmPort, qpn: Qpn, psn: Psn, addressing: IpCm) -> Self {
        let gid = |address| match address {
            std::net::IpAddr::V4(ip) => Gid::from(ip),
            std::net::IpAddr::V6(ip) => Gid::from(ip),
        };
        let addresses = addressing.addresses;
        let (from, to) = (gid(addresses.source()), gid(addresses.destination()));
        let request = Self::new(ServiceId::from_tcp_port(port), qpn, psn, from, to);
        Self { addressing: Some(addressing), ..request }
    }

    /// Returns the private data of the REQ, which begins with IP addressing where there is any, and
    /// the extensions that are offered at its end.
    pub(crate) fn private(
        &self,
        application: &[u8],
        extensions: Extensions,
    ) -> Result<([u8; Req::PRIVATE_DATA], Extensions), TooLong> {
        let (mut private, header) = match &self.addressing {
            Some(addressing) => (addressing.before(application)?, IpCm::LEN),
            None => (padded(application)?, 0),
        };
        let offered = offer(&mut private, header + application.len(), extensions);
        Ok((private, offered))
    }

    /// Returns the REQ with these terms.
    pub(crate) fn message<'a>(
        &self,
        local: CommId,
        ca_guid: CaGuid,
        private: &'a [u8; Req::PRIVATE_DATA],
    ) -> Req<'a> {
        Req {
            local,
            service: self.service,
            ca_guid,
            qpn: self.qpn,
            responder_resources: self.responder_resources,
            initiator_depth: self.initiator_depth,
            remote_timeout: self.remote_timeout,
            transport: self.transport,
            flow_control: self.flow_control,
            psn: self.psn,
            local_timeout: self.local_timeout,
            retry_count: self.retry_count,
            pkey: self.pkey,
            path_mtu: self.mtu.into(),
            rnr_retry_count: self.rnr_retry_count,
            max_cm_retries: self.retries,
            srq: self.srq,
            primary: self.path,
            private: PrivateData::from(private),
            ..Req::default()
        }
    }

    /// Reads the terms that a REQ proposes.
    ///
    /// # Errors
    /// The reason to reject the REQ, if its terms are not supported here.
    pub(super) fn read<'a>(req: &Req<'a>) -> Result<Received<'a, Self>, RejectReason> {
        let mtu = req.path_mtu.mtu().ok_or(RejectReason::INVALID_MTU)?;
        if !matches!(req.transport, TransportService::RELIABLE | TransportService::UNRELIABLE) {
            return Err(RejectReason::INVALID_TRANSPORT);
        }
        let (addressing, rest) = match req.service.ip_port() {
            Some(_) => {
                let (addressing, rest) = req.ip_cm().map_err(|_| RejectReason::UNSUPPORTED)?;
                (Some(addressing), rest)
            }
            None => (None, req.private.as_bytes()),
        };
        let (extensions, private) = offered(rest);
        let terms = Self {
            service: req.service,
            qpn: req.qpn,
            psn: req.psn,
            transport: req.transport,
            mtu,
            pkey: req.pkey,
            responder_resources: req.responder_resources,
            initiator_depth: req.initiator_depth,
            retry_count: req.retry_count,
            rnr_retry_count: req.rnr_retry_count,
            flow_control: req.flow_control,
            srq: req.srq,
            path: req.primary,
            addressing,
            remote_timeout: req.remote_timeout,
            local_timeout: req.local_timeout,
            retries: req.max_cm_retries,
        };
        Ok(Received { terms, extensions, private })
    }
}

/// The terms from a received REQ or REP, with the rest of what its private data says.
pub(super) struct Received<'a, T> {
    /// The [`Request`] or the [`Reply`].
    pub terms: T,
    /// The known extensions that the message offers.
    pub extensions: Extensions,
    /// The application's part of the private data.
    pub private: &'a [u8],
}

/// The terms that a responder adds in its REP when it accepts a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reply {
    /// The responder's queue pair.
    pub qpn: Qpn,
    /// The packet sequence number of the first packet that the responder expects, and that the
    /// requester therefore begins with.
    pub psn: Psn,
    /// How many reads and atomic operations of the requester the responder serves at a time.
    pub responder_resources: ResponderResources,
    /// The most reads and atomic operations that the responder will have under way: no more than
    /// the requester serves.
    pub initiator_depth: InitiatorDepth,
    /// The target ACK delay: how long the responder's adapter may take to acknowledge.
    pub ack_delay: AckDelay,
    /// How often the requester is to retry a request that found no receive posted.
    pub rnr_retry_count: RnrRetryCount,
    /// Whether the responder supports end-to-end flow control.
    pub flow_control: bool,
    /// Whether the responder's queue pair uses a shared receive queue.
    pub srq: bool,
}

impl Reply {
    /// Returns a reply on customary terms: no reads and no atomic operations.
    pub fn new(qpn: Qpn, psn: Psn) -> Self {
        Self {
            qpn,
            psn,
            responder_resources: ResponderResources(0),
            initiator_depth: InitiatorDepth(0),
            ack_delay: AckDelay::new(15),
            rnr_retry_count: RnrRetryCount::INFINITE,
            flow_control: false,
            srq: false,
        }
    }

    /// Returns a reply to `request` with reads and atomic operations: in either direction as many as
    /// the request proposes, but no more than `most`.
    pub fn to(request: &Request, qpn: Qpn, psn: Psn, most: u8) -> Self {
        Self {
            responder_resources: ResponderResources(request.initiator_depth.0.min(most)),
            initiator_depth: InitiatorDepth(request.responder_resources.0.min(most)),
            ..Self::new(qpn, psn)
        }
    }

    /// Returns the REP with these terms.
    pub(super) fn message<'a>(
        &self,
        local: CommId,
        remote: CommId,
        ca_guid: CaGuid,
        failover: Failover,
        private: &'a [u8; Rep::PRIVATE_DATA],
    ) -> Rep<'a> {
        Rep {
            local,
            remote,
            qpn: self.qpn,
            psn: self.psn,
            responder_resources: self.responder_resources,
            initiator_depth: self.initiator_depth,
            ack_delay: self.ack_delay,
            failover,
            flow_control: self.flow_control,
            rnr_retry_count: self.rnr_retry_count,
            srq: self.srq,
            ca_guid,
            private: PrivateData::from(private),
            ..Rep::default()
        }
    }

    /// Reads the terms that a REP adds.
    pub(super) fn read<'a>(rep: &Rep<'a>) -> Received<'a, Self> {
        let (extensions, private) = offered(rep.private.as_bytes());
        let terms = Self {
            qpn: rep.qpn,
            psn: rep.psn,
            responder_resources: rep.responder_resources,
            initiator_depth: rep.initiator_depth,
            ack_delay: rep.ack_delay,
            rnr_retry_count: rep.rnr_retry_count,
            flow_control: rep.flow_control,
            srq: rep.srq,
        };
        Received { terms, extensions, private }
    }
}

/// Returns an application's private data, followed by zeros up to the room that a message has.
pub(super) fn padded<const ROOM: usize>(application: &[u8]) -> Result<[u8; ROOM], TooLong> {
    let mut private = [0; ROOM];
    PrivateData::<ROOM>::new(application)?;
    private[..application.len()].copy_from_slice(application);
    Ok(private)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_repeated_for_as_long_as_it_is_to_be_tried() {
        let tried = |total| {
            let (gid, qpn) = (Gid::default(), Qpn::new(5));
            let request = Request::new(ServiceId(1), qpn, Psn::new(0), gid, gid).within(total);
            assert_eq!(request.local_timeout, request.remote_timeout);
            let interval = request.remote_timeout.duration();
            (interval, interval * (u32::from(request.retries.get()) + 1))
        };
        for millis in [1, 10, 100, 250, 1000, 4000, 10_000, 60_000, 1_000_000] {
            let total = Duration::from_millis(millis);
            let (interval, tried) = tried(total);
            assert!(total <= tried && tried < total + interval, "{total:?}: {tried:?}");
            assert!(interval * 7 <= total, "repeated often enough: {interval:?} in {total:?}");
        }
        assert_eq!(tried(Duration::ZERO).1, Duration::from_nanos(4096));
        assert!(tried(Duration::MAX).1 > Duration::from_secs(2000), "as long as can be said");
    }
}
