//! Service ID resolution, which finds the queue pair that serves datagrams: SIDR_REQ, and its reply
//! SIDR_REP.

use super::ip::IpCm;
use super::layout::{Field, Reader, Writer, layout};
use super::numbers::SidrStatus;
use super::private_data::{AdditionalInfo, PrivateData};
use crate::wire::malformed::Malformed;
use crate::wire::numbers::{CommId, Pkey, Qkey, Qpn, ServiceId};

layout! {
    /// SIDR_REQ, the request to resolve a service ID to the queue pair that serves datagrams.
    pub struct SidrReq<'a> {
        /// The identifier of the request, which its reply repeats.
        request: CommId;
        /// The key of the sender's partition.
        pkey: Pkey, reserved 16;
        /// The service that is requested.
        service: ServiceId;
        /// The private data of the sender's program. With `rdma_cm`, an [`IpCm`] precedes it.
        private: PrivateData<'a, { SidrReq::PRIVATE_DATA }>;
    }
}

impl<'a> SidrReq<'a> {
    /// The bytes of private data that a SIDR_REQ has room for.
    pub const PRIVATE_DATA: usize = 216;

    /// Parses the IP addressing that `rdma_cm` puts in front of the private data. Returns the
    /// addressing and the rest of the private data.
    pub fn ip_cm(&self) -> Result<(IpCm, &'a [u8]), Malformed> {
        IpCm::parse(self.private.as_bytes())
    }
}

/// SIDR_REP, the reply to a [`SidrReq`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SidrRep<'a> {
    /// The identifier of the request.
    pub request: CommId,
    /// The status of the request.
    pub status: SidrStatus,
    /// The queue pair that serves datagrams.
    pub qpn: Qpn,
    /// The service that was requested.
    pub service: ServiceId,
    /// The key that datagrams to the queue pair must carry.
    pub qkey: Qkey,
    /// Additional information that explains the status.
    pub info: AdditionalInfo<'a>,
    /// The private data of the sender's program.
    pub private: PrivateData<'a, { SidrRep::PRIVATE_DATA }>,
}

impl SidrRep<'_> {
    /// The bytes of private data that a SIDR_REP has room for.
    pub const PRIVATE_DATA: usize = 136;
    const INFO_LENGTH_BITS: usize = 8;
}

impl<'bytes: 'a, 'a> Field<'bytes> for SidrRep<'a> {
    const BITS: usize = 24 * 8 + AdditionalInfo::BITS + 8 * Self::PRIVATE_DATA;

    fn read(from: &mut Reader<'bytes>) -> Result<Self, Malformed> {
        let request = from.take()?;
        let status = from.take()?;
        let info_length = from.bits(Self::INFO_LENGTH_BITS);
        from.skip(16);
        let qpn = from.take()?;
        from.skip(8);
        let (service, qkey) = (from.take()?, from.take()?);
        let info = AdditionalInfo::read(from, info_length)?;
        Ok(Self { request, status, qpn, service, qkey, info, private: from.take()? })
    }

    fn write(&self, to: &mut Writer<'_>) {
        self.request.write(to);
        self.status.write(to);
        to.bits(self.info.as_bytes().len() as u64, Self::INFO_LENGTH_BITS);
        to.skip(16);
        self.qpn.write(to);
        to.skip(8);
        self.service.write(to);
        self.qkey.write(to);
        self.info.write(to);
        self.private.write(to);
    }
}
