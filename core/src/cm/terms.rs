//! What two ends agree upon: the terms of a request, and those of the reply.

use std::time::Duration;

use crate::wire::cm::{
    AckDelay, AckTimeout, CmPort, CmRetries, CmTimeout, Failover, HopLimit, InitiatorDepth, IpCm,
    Path, PrivateData, RejectReason, Rep, Req, ResponderResources, RetryCount, RnrRetryCount,
    TooLong, TransportService,
};
use crate::wire::{CaGuid, CommId, Gid, Lid, PathMtu, Pkey, Psn, Qpn, ServiceId};

use super::extensions::{Extensions, offer, offered};

/// What a requester proposes. The responder, who is shown it, takes it as it is or refuses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    /// The service asked for.
    pub service: ServiceId,
    /// The requester's queue pair.
    pub qpn: Qpn,
    /// The sequence number that it expects, and the responder's first packet therefore bears.
    pub psn: Psn,
    /// The kind of connection, reliable or unreliable.
    pub transport: TransportService,
    /// The most payload that a packet carries.
    pub mtu: PathMtu,
    /// The partition.
    pub pkey: Pkey,
    /// How many reads and atomic operations the requester takes at a time.
    pub responder_resources: ResponderResources,
    /// How many reads and atomic operations the requester will have under way.
    pub initiator_depth: InitiatorDepth,
    /// How often the responder is to send again what is not acknowledged.
    pub retry_count: RetryCount,
    /// How often the responder is to send again what found no receive posted.
    pub rnr_retry_count: RnrRetryCount,
    /// Whether the requester's side counts end-to-end credits.
    pub flow_control: bool,
    /// Whether the requester's queue pair uses a shared receive queue.
    pub srq: bool,
    /// The way between the two ports, and how long the requester waits for an acknowledgement.
    pub path: Path,
    /// Ports and addresses as `rdma_cm` tells them: there if the service is a port, and only then.
    pub addressing: Option<IpCm>,
    /// How long the responder's manager may take to answer.
    pub remote_timeout: CmTimeout,
    /// How long the requester's manager may take to answer.
    pub local_timeout: CmTimeout,
    /// How often either manager says a thing again before it gives up.
    pub retries: CmRetries,
}

impl Request {
    /// A request on customary terms: reliable, packets of 1024 bytes, 7 retries, no reads and no
    /// atomic operations; 268 ms for an answer of the peer's manager, and 15 repetitions, which is
    /// 4.3 s until it is given up.
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

    /// The same, to be given up about `total` after it is first said, if nothing comes back. The
    /// wire has room for an interval of 4.096 µs times a power of two, and for 15 repetitions: it
    /// takes the shortest interval with which they suffice, and so may take one interval more than
    /// `total`. Both managers are to wait so.
    #[must_use]
    pub fn within(self, total: Duration) -> Self {
        let said = u32::from(CmRetries::MAX.get()) + 1;
        let timeout = CmTimeout::at_least(total / said);
        let times = total.as_nanos().div_ceil(timeout.duration().as_nanos()).clamp(1, said.into());
        let retries = CmRetries::new(times as u8 - 1);
        Self { remote_timeout: timeout, local_timeout: timeout, retries, ..self }
    }

    /// The same as `rdma_cm` asks for it: for a port, between two IP addresses.
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

    /// All of its private data, and which extensions are offered there.
    pub(super) fn private(
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

    pub(super) fn message<'a>(
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

    /// What a message proposes, the extensions that it offers, and what its application says; or
    /// why nobody here could take it.
    pub(super) fn read<'a>(req: &Req<'a>) -> Result<(Self, Extensions, &'a [u8]), RejectReason> {
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
        let (extensions, application) = offered(rest);
        let request = Self {
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
        Ok((request, extensions, application))
    }
}

/// What a responder adds when it takes a connection up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reply {
    /// The responder's queue pair.
    pub qpn: Qpn,
    /// The sequence number that it expects, and the requester's first packet therefore bears.
    pub psn: Psn,
    /// How many reads and atomic operations the responder takes at a time.
    pub responder_resources: ResponderResources,
    /// How many the responder will have under way: no more than the requester takes.
    pub initiator_depth: InitiatorDepth,
    /// How long the responder's adapter may take to acknowledge.
    pub ack_delay: AckDelay,
    /// How often the requester is to send again what found no receive posted.
    pub rnr_retry_count: RnrRetryCount,
    /// Whether the responder's side counts end-to-end credits.
    pub flow_control: bool,
    /// Whether the responder's queue pair uses a shared receive queue.
    pub srq: bool,
}

impl Reply {
    /// A reply on customary terms: no reads and no atomic operations.
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

    /// The same with reads and atomic operations: as many as are proposed, in either direction, and
    /// no more than `most`.
    pub fn to(request: &Request, qpn: Qpn, psn: Psn, most: u8) -> Self {
        Self {
            responder_resources: ResponderResources(request.initiator_depth.0.min(most)),
            initiator_depth: InitiatorDepth(request.responder_resources.0.min(most)),
            ..Self::new(qpn, psn)
        }
    }

    pub(super) fn message<'a>(
        &self,
        (local, remote): (CommId, CommId),
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

    /// What a message says, the extensions in it, and what its application says.
    pub(super) fn read<'a>(rep: &Rep<'a>) -> (Self, Extensions, &'a [u8]) {
        let (extensions, application) = offered(rep.private.as_bytes());
        let reply = Self {
            qpn: rep.qpn,
            psn: rep.psn,
            responder_resources: rep.responder_resources,
            initiator_depth: rep.initiator_depth,
            ack_delay: rep.ack_delay,
            rnr_retry_count: rep.rnr_retry_count,
            flow_control: rep.flow_control,
            srq: rep.srq,
        };
        (reply, extensions, application)
    }
}

/// An application's bytes with the zeros behind them.
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
