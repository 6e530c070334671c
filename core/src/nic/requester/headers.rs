//! What the packets of sends and writes begin with.

use crate::nic::queues::Posted;
use crate::nic::work::{Attachment, Operation};
use crate::wire::{DmaLength, Extensions, Opcode, Reth};

/// The opcode and extension headers of a packet of a send or a write.
#[inline(always)]
pub fn headers(posted: &Posted, begins: bool, ends: bool) -> (Opcode, Extensions) {
    let request = &posted.request;
    match request.operation {
        Operation::Write { address, rkey } => {
            let reth = Reth { address, rkey, length: DmaLength(posted.len) };
            write_headers(reth, begins, ends.then_some(request.attached))
        }
        _ => send_headers(begins, ends.then_some(request.attached)),
    }
}

#[inline(always)]
fn send_headers(begins: bool, last: Option<Attachment>) -> (Opcode, Extensions) {
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
