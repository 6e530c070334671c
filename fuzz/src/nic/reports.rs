//! Acknowledgements with reports, of peers that share selective repeat: what has arrived, whether
//! it was sent or not.

use doorbell_core::wire::{Aeth, Bth, Extensions, Headers, Msn, Opcode, Psn, Report, Syndrome};

use super::super::input::Input;
use super::packets::Target;

/// Draws an acknowledgement with a report: mostly of packets that were sent, with bits for some
/// that were sent behind these.
pub fn acknowledgement(input: &mut Input<'_>, target: &Target) -> (Headers, Vec<u8>) {
    let psn = match input.u8() {
        0..160 => back(target.sent, u32::from(input.u8() & 15)),
        160..224 => target.sent,
        224..250 => near(target.sent, input),
        _ => Psn::new(u32::from_le_bytes(input.array())),
    };
    let newest = match input.u8() {
        0..224 => back(target.sent, u32::from(input.u8() & 15)),
        _ => near(target.sent, input),
    };
    let report = Report {
        newest,
        held: u32::from_le_bytes(input.array()),
        marked: u32::from(input.u8()),
        repeated: input.u8() & 3,
    };
    let syndrome = if input.u8() < 240 { 0x1F } else { input.u8() };
    let aeth = Aeth { syndrome: Syndrome::from_code(syndrome), msn: Msn::new(0) };
    let bth = Bth::new(Opcode::RcAcknowledgeSelective, target.qpn, psn);
    (Headers { bth, extensions: Extensions::AethReport(aeth, report) }, bits(input))
}

/// Draws bits: mostly few, now and then as many as there may be, or more.
fn bits(input: &mut Input<'_>) -> Vec<u8> {
    let len = match input.u8() {
        0..224 => usize::from(input.u8() & 3),
        224..248 => Report::MOST_BITS / 8 - usize::from(input.u8() & 1),
        _ => usize::from(input.u16()) % 300,
    };
    let mut bits = vec![0; len];
    let given = input.bytes(len.min(4));
    bits[..given.len()].copy_from_slice(given);
    // Those far behind are all set, or not.
    let others = if input.u8() & 1 == 0 { 0 } else { 0xFF };
    bits.iter_mut().skip(4).for_each(|byte| *byte = others);
    bits
}

fn back(psn: Psn, by: u32) -> Psn {
    psn.add(Psn::MAX.get() + 1 - by)
}

fn near(psn: Psn, input: &mut Input<'_>) -> Psn {
    psn.add((i32::from(input.u8()) - 128) as u32)
}
