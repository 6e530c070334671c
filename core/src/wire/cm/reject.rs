//! The message that rejects a connection: REJ, in place of REP or RTU.

use super::layout::{Field, Reader, Writer};
use super::numbers::{Answered, RejectReason};
use super::private_data::{AdditionalInfo, PrivateData};
use crate::wire::malformed::Malformed;
use crate::wire::numbers::CommId;

/// REJ, the message that rejects a connection, or gives up one that is not established yet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Rej<'a> {
    /// The sender's communication ID, or zero if it has none.
    pub local: CommId,
    /// The receiver's communication ID.
    pub remote: CommId,
    /// The message that is rejected.
    pub rejected: Answered,
    /// The reason for the rejection.
    pub reason: RejectReason,
    /// Additional information that explains the reason.
    pub info: AdditionalInfo<'a>,
    /// The private data of the sender's program.
    pub private: PrivateData<'a, { Rej::PRIVATE_DATA }>,
}

impl Rej<'_> {
    /// The bytes of private data that a REJ has room for.
    pub const PRIVATE_DATA: usize = 148;
    const INFO_LENGTH_BITS: usize = 7;
}

impl<'bytes: 'a, 'a> Field<'bytes> for Rej<'a> {
    const BITS: usize = 12 * 8 + AdditionalInfo::BITS + 8 * Self::PRIVATE_DATA;

    fn read(from: &mut Reader<'bytes>) -> Result<Self, Malformed> {
        let (local, remote) = (from.take()?, from.take()?);
        let rejected = from.take()?;
        from.skip(6);
        let info_length = from.bits(Self::INFO_LENGTH_BITS);
        from.skip(1);
        let reason = from.take()?;
        let info = AdditionalInfo::read(from, info_length)?;
        Ok(Self { local, remote, rejected, reason, info, private: from.take()? })
    }

    fn write(&self, to: &mut Writer<'_>) {
        self.local.write(to);
        self.remote.write(to);
        self.rejected.write(to);
        to.skip(6);
        to.bits(self.info.as_bytes().len() as u64, Self::INFO_LENGTH_BITS);
        to.skip(1);
        self.reason.write(to);
        self.info.write(to);
        self.private.write(to);
    }
}
