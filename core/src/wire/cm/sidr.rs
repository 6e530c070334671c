//! Finding the queue pair that serves datagrams: SIDR_REQ, answered by SIDR_REP.

use super::ip::IpCm;
use super::layout::{Field, Reader, Writer, layout};
use super::numbers::SidrStatus;
use super::private_data::{AdditionalInfo, PrivateData};
use crate::wire::malformed::Malformed;
use crate::wire::numbers::{CommId, Pkey, Qkey, Qpn, ServiceId};

layout! {
    /// The question which queue pair serves a service id.
    pub struct SidrReq<'a> {
        /// The sender's name for the question.
        request: CommId;
        /// The partition.
        pkey: Pkey, reserved 16;
        /// The service asked for.
        service: ServiceId;
        /// What the sender's program has to say, behind an [`IpCm`] where `rdma_cm` is spoken.
        private: PrivateData<'a, { SidrReq::PRIVATE_DATA }>;
    }
}

impl<'a> SidrReq<'a> {
    /// How many bytes of private data there is room for.
    pub const PRIVATE_DATA: usize = 216;

    /// The IP addressing in front of the private data, and the rest of it, as `rdma_cm` sends it.
    pub fn ip_cm(&self) -> Result<(IpCm, &'a [u8]), Malformed> {
        IpCm::parse(self.private.as_bytes())
    }
}

/// The answer to a [`SidrReq`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SidrRep<'a> {
    /// The name of the question.
    pub request: CommId,
    /// What became of it.
    pub status: SidrStatus,
    /// The queue pair that serves.
    pub qpn: Qpn,
    /// The service asked for.
    pub service: ServiceId,
    /// The key that datagrams to the queue pair must carry.
    pub qkey: Qkey,
    /// What explains the status.
    pub info: AdditionalInfo<'a>,
    /// What the sender's program has to say.
    pub private: PrivateData<'a, { SidrRep::PRIVATE_DATA }>,
}

impl SidrRep<'_> {
    /// How many bytes of private data there is room for.
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
