//! Writes of the peer's into this side's memory.

use crate::memory::Region;
use crate::nic::protection::key_table::KeyTable;
use crate::nic::protection::rights::Rights;
use crate::nic::protection::segment::Domain;
use crate::nic::requests::completion::Done;
use crate::nic::requests::failure::Cause;
use crate::nic::requests::memory::LONGEST_MESSAGE;
use crate::nic::requests::work_request::Attachment;
use crate::nic::responder::outcomes::{ReceivedMessage, Refusal};
use crate::nic::state::common::Common;
use crate::nic::state::queue_pair::QueuePair;
use crate::nic::state::responder::InboundMessage;
use crate::payload::Payload;
use crate::planted::{Bug, planted};
use crate::wire::{Extensions, Metadata, Nak, Packet, RemoteAddr, Reth, Rkey};

impl QueuePair {
    /// Executes a packet of a write.
    #[inline]
    pub(crate) fn execute_write<P: Payload>(
        &mut self,
        packet: &Packet<P>,
        common: &mut Common,
    ) -> Result<(), Refusal> {
        let info = packet.headers.bth.opcode().info();
        let (reth, attached) = self.write_extensions(packet.headers.extensions)?;
        let write = match (reth, &self.responder.inbound) {
            (Some(reth), InboundMessage::Nothing)
                if info.ends() && attached == Attachment::Nothing =>
            {
                return self.execute_whole_write(reth, packet.payload, &common.keys);
            }
            (Some(reth), InboundMessage::Nothing) => {
                self.write_target(reth, &common.keys)?;
                (reth.address, reth.rkey, reth.length.0, reth.length.0)
            }
            (None, &InboundMessage::Write { address, rkey, left, total }) => {
                (address, rkey, left, total)
            }
            _ => return Err(Refusal::INVALID),
        };
        let (mut address, rkey, left, total) = write;
        let len = packet.payload.len() as u32;
        if if info.ends() { len != left } else { len >= left } {
            return Err(Refusal::INVALID);
        }
        if planted(Bug::MisplacesTheLastPacket) && reth.is_none() && info.ends() {
            address = RemoteAddr(address.0 - u64::from(len));
        }
        // Key and bounds are checked with every packet, since the key may have been revoked since.
        let domain = self.domain;
        // Nothing is written before the receive that the message completes was taken, and no
        // receive is taken for what may not be written.
        let receive = match attached {
            Attachment::Nothing => None,
            _ => {
                written(&common.keys, domain, rkey, address, len)?;
                Some(self.take_receive(common)?)
            }
        };
        if let Some((region, start)) = written(&common.keys, domain, rkey, address, len)? {
            packet.payload.copy_to_words(region.words(), start);
        }
        self.responder.inbound = match info.ends() {
            true => InboundMessage::Nothing,
            false => {
                let address = RemoteAddr(address.0 + u64::from(len));
                InboundMessage::Write { address, rkey, left: left - len, total }
            }
        };
        if let Some(receive) = receive {
            let solicited = packet.headers.bth.solicited();
            let message =
                ReceivedMessage { done: Done::ReceivedWrite, len: total, attached, solicited };
            self.complete_receive(receive, message, common);
        } else if info.ends() {
            self.responder.msn = self.responder.msn.add(1);
        }
        Ok(())
    }

    /// Returns the RETH and the attachment of a packet of a write, as far as it has them.
    #[inline(always)]
    fn write_extensions(
        &self,
        extensions: Extensions,
    ) -> Result<(Option<Reth>, Attachment), Refusal> {
        Ok(match extensions {
            Extensions::None => (None, Attachment::Nothing),
            Extensions::Reth(reth) => (Some(reth), Attachment::Nothing),
            Extensions::RethImm(reth, imm) => (Some(reth), Attachment::Imm(imm)),
            Extensions::Imm(imm) => (None, Attachment::Imm(imm)),
            Extensions::RethMetadata(reth, data) => (Some(reth), self.offered_metadata(data)?),
            Extensions::Metadata(data) => (None, self.offered_metadata(data)?),
            _ => return Err(Refusal::INVALID),
        })
    }

    /// Returns metadata as an attachment, if this side has offered to take it. If not, the request
    /// is invalid.
    #[inline]
    fn offered_metadata(&self, data: Metadata) -> Result<Attachment, Refusal> {
        match self.responder.takes_metadata {
            true => Ok(Attachment::Metadata(data)),
            false => Err(Refusal::Fatal(Nak::InvalidRequest, Cause::MetadataNotOffered)),
        }
    }

    /// Executes a write of one packet without an attachment, as most are.
    #[inline(always)]
    pub(crate) fn execute_whole_write<P: Payload>(
        &mut self,
        reth: Reth,
        payload: P,
        keys: &KeyTable,
    ) -> Result<(), Refusal> {
        let target = self.write_target(reth, keys)?;
        if payload.len() as u64 != u64::from(reth.length.0) {
            return Err(Refusal::INVALID);
        }
        if let Some((region, start)) = target {
            payload.copy_to_words(region.words(), start);
        }
        self.responder.msn = self.responder.msn.add(1);
        Ok(())
    }

    /// Returns where a write begins, if it is allowed, and writes any bytes.
    #[inline(always)]
    fn write_target<'a>(
        &self,
        reth: Reth,
        keys: &'a KeyTable,
    ) -> Result<Option<(&'a Region, usize)>, Refusal> {
        let Reth { address, rkey, length } = reth;
        if length.0 > LONGEST_MESSAGE {
            return Err(Refusal::INVALID);
        }
        self.check_rights(Rights::REMOTE_WRITE)?;
        written(keys, self.domain, rkey, address, length.0)
    }

    /// Checks whether the queue pair allows its peer to do this at all.
    #[inline]
    pub fn check_rights(&self, rights: Rights) -> Result<(), Refusal> {
        match self.rights.include(rights) {
            true => Ok(()),
            false => Err(Refusal::Fatal(Nak::InvalidRequest, Cause::NotGranted)),
        }
    }
}

/// Returns the memory that `len` bytes are to be written to. A write of no bytes touches no memory,
/// and its key is not checked.
#[inline]
fn written(
    keys: &KeyTable,
    domain: Domain,
    rkey: Rkey,
    address: RemoteAddr,
    len: u32,
) -> Result<Option<(&Region, usize)>, Refusal> {
    if len == 0 {
        return Ok(None);
    }
    let found = keys.remote(domain, rkey, Rights::REMOTE_WRITE, address, u64::from(len));
    found.map(Some).map_err(|why| Refusal::access_to(address, len.into(), why))
}
