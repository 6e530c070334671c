//! Opcodes and extension headers of the packets of sends and writes.

use crate::nic::queues::posted::Posted;
use crate::nic::requests::work_request::{Attachment, Operation, WorkRequest};
use crate::nic::state::common::Common;
use crate::wire::{DmaLength, Extensions, Opcode, RemoteAddr, Reth, Service};

/// Returns the opcode and the extension headers of a packet of a send or a write that carries `len`
/// bytes from `offset` on. If the request `splits`, each packet is a write of its own.
#[inline(always)]
pub fn headers(posted: &Posted, offset: u32, len: u32, splits: bool) -> (Opcode, Extensions) {
    let request = &posted.request;
    let (begins, ends) = (offset == 0, offset + len == posted.len);
    match request.operation {
        Operation::Write { address, rkey } if splits => {
            let address = RemoteAddr(address.0.wrapping_add(offset.into()));
            let reth = Reth { address, rkey, length: DmaLength(len) };
            (Opcode::RcWriteOnly, Extensions::Reth(reth))
        }
        Operation::Write { address, rkey } => {
            let reth = Reth { address, rkey, length: DmaLength(posted.len) };
            write_headers(reth, begins, ends.then_some(request.attached))
        }
        _ => send_headers(begins, ends.then_some(request.attached)),
    }
}

impl Common {
    /// Whether each packet of a request is a write of its own. An attachment says that all of a
    /// write has come, so a write with one is not split.
    #[inline]
    pub fn splits_write(&self, request: &WorkRequest, service: Service) -> bool {
        self.splits_writes
            && service == Service::Rc
            && matches!(request.operation, Operation::Write { .. })
            && request.attached == Attachment::Nothing
    }
}

/// Returns the opcode and the extension headers of a packet of a send. `last` is the attachment of
/// the message, if the packet is its last.
#[inline(always)]
pub fn send_headers(begins: bool, last: Option<Attachment>) -> (Opcode, Extensions) {
    use Attachment::{Imm, Invalidate};
    match (begins, last) {
        (true, None) => (Opcode::RcSendFirst, Extensions::None),
        (false, None) => (Opcode::RcSendMiddle, Extensions::None),
        (true, Some(Imm(imm))) => (Opcode::RcSendOnlyImmediate, Extensions::Imm(imm)),
        (false, Some(Imm(imm))) => (Opcode::RcSendLastImmediate, Extensions::Imm(imm)),
        (true, Some(Invalidate(key))) => (Opcode::RcSendOnlyInvalidate, Extensions::Ieth(key)),
        (false, Some(Invalidate(key))) => (Opcode::RcSendLastInvalidate, Extensions::Ieth(key)),
        (true, Some(_)) => (Opcode::RcSendOnly, Extensions::None),
        (false, Some(_)) => (Opcode::RcSendLast, Extensions::None),
    }
}

/// Returns the opcode and the extension headers of a packet of a write. `last` is the attachment of
/// the message, if the packet is its last.
#[inline(always)]
fn write_headers(reth: Reth, begins: bool, last: Option<Attachment>) -> (Opcode, Extensions) {
    use Attachment::{Imm, Metadata};
    match (begins, last) {
        (true, None) => (Opcode::RcWriteFirst, Extensions::Reth(reth)),
        (false, None) => (Opcode::RcWriteMiddle, Extensions::None),
        (true, Some(Imm(imm))) => (Opcode::RcWriteOnlyImmediate, Extensions::RethImm(reth, imm)),
        (false, Some(Imm(imm))) => (Opcode::RcWriteLastImmediate, Extensions::Imm(imm)),
        (true, Some(Metadata(data))) => {
            (Opcode::RcWriteOnlyMetadata, Extensions::RethMetadata(reth, data))
        }
        (false, Some(Metadata(data))) => (Opcode::RcWriteLastMetadata, Extensions::Metadata(data)),
        (true, Some(_)) => (Opcode::RcWriteOnly, Extensions::Reth(reth)),
        (false, Some(_)) => (Opcode::RcWriteLast, Extensions::None),
    }
}
