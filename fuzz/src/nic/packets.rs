//! Packets that a peer could have sent, and others.

use doorbell_core::encap::{Path, Run};
use doorbell_core::wire::{
    Aeth, AtomicEth, AtomicValue, Bth, Deth, DmaLength, Extensions, Headers, IpId, Msn, Opcode,
    Operation, Pkey, Psn, Qkey, Qpn, RemoteAddr, Reth, Rkey, Service, Syndrome,
};

use super::super::headers::allow;
use super::super::input::Input;
use super::lines::Asked;
use super::memory::{LEN, Memory};
use super::paths::{MTU, peer};

/// The opcodes that a queue pair is mostly sent while no message is half received.
const BEGINNINGS: [Opcode; 16] = [
    Opcode::RcSendFirst,
    Opcode::RcWriteFirst,
    Opcode::RcSendOnly,
    Opcode::RcSendOnlyImmediate,
    Opcode::RcSendOnlyInvalidate,
    Opcode::RcWriteOnly,
    Opcode::RcWriteOnlyImmediate,
    Opcode::RcWriteOnlyMetadata,
    Opcode::RcReadRequest,
    Opcode::RcReadRequest,
    Opcode::RcReadRequest,
    Opcode::RcCompareSwap,
    Opcode::RcCompareSwap,
    Opcode::RcFetchAdd,
    Opcode::RcFetchAdd,
    Opcode::RcWriteFirst,
];

/// The opcodes by which a send goes on, and those by which a write ends.
const OF_SENDS: [Opcode; 4] = [
    Opcode::RcSendMiddle,
    Opcode::RcSendLast,
    Opcode::RcSendLastImmediate,
    Opcode::RcSendLastInvalidate,
];
const ENDS_OF_WRITES: [Opcode; 4] = [
    Opcode::RcWriteLast,
    Opcode::RcWriteLast,
    Opcode::RcWriteLastImmediate,
    Opcode::RcWriteLastMetadata,
];

/// The key that datagrams must name.
pub const QKEY: Qkey = Qkey(0x1234_5678);

/// The message of which a queue pair has received a part.
#[derive(Clone, Copy, Default)]
pub enum Within {
    #[default]
    Nothing,
    Send,
    Write {
        address: RemoteAddr,
        rkey: Rkey,
        left: u32,
        total: u32,
    },
}

/// The queue pair that a packet is for, as far as packets depend on it.
pub struct Target {
    pub qpn: Qpn,
    pub service: Service,
    /// The sequence number of the next request that the queue pair expects.
    pub expected: Psn,
    /// The sequence number of the newest request that the queue pair has sent.
    pub sent: Psn,
    pub within: Within,
    /// Whether the queue pair keeps packets from beyond a gap.
    pub selective: bool,
}

/// The byte that fills the answer to a read. It depends on the sequence number, so that each answer
/// is known by it.
pub const fn byte_of(psn: Psn) -> u8 {
    (psn.get() * 5 + 1) as u8
}

pub const fn word_of(psn: Psn) -> u64 {
    (psn.get() as u64 + 1) * 0x1_0000_0001
}

/// Draws a packet for a queue pair: mostly one that the peer could have sent.
pub fn packet(input: &mut Input<'_>, target: &Target, memory: &Memory) -> (Headers, Vec<u8>) {
    let opcode = opcode(input, target);
    let info = opcode.info();
    let base = if info.is_response() { target.sent } else { target.expected };
    let psn = match input.u8() {
        96..200 if target.selective && !info.is_response() => {
            base.add(1 + u32::from(input.u8() & 7))
        }
        0..200 => base,
        200..244 => base.add((i32::from(input.u8()) - 128) as u32),
        _ => Psn::new(u32::from_le_bytes(input.array())),
    };
    let flags = input.u8();
    let bth = Bth::new(opcode, target.qpn, psn)
        .with_ack_request(flags & 1 != 0)
        .with_solicited(flags & 2 != 0)
        .with_migrated(flags & 4 != 0)
        .with_congestion(flags & 8 != 0, flags & 16 != 0)
        .with_pkey(if flags >= 252 { Pkey(0x8001) } else { Pkey::DEFAULT });

    let len = length(input, opcode, target.within);
    let extensions = extensions(input, (opcode, psn), len, memory);
    let byte = if info.is_response() { byte_of(psn) } else { input.u8() };
    (Headers { bth, extensions }, vec![byte; len])
}

fn opcode(input: &mut Input<'_>, target: &Target) -> Opcode {
    let which = input.u8();
    let of = |opcodes: &[Opcode]| opcodes[usize::from(which) % opcodes.len()];
    let opcode = match (which, target.within) {
        (0..48, _) => Opcode::RcAcknowledge,
        (224.., _) => return input.choose(Opcode::ALL),
        (_, Within::Nothing) => of(&BEGINNINGS),
        (_, Within::Send) => of(&OF_SENDS),
        (_, Within::Write { left, .. }) if left as usize > MTU.bytes() => Opcode::RcWriteMiddle,
        (_, Within::Write { .. }) => of(&ENDS_OF_WRITES),
    };
    match target.service {
        Service::Rc => opcode,
        Service::Uc => opcode.unreliable().unwrap_or(Opcode::UcSendOnly),
        _ => of(&[Opcode::UdSendOnly, Opcode::UdSendOnlyImmediate]),
    }
}

/// Draws the length of a payload: mostly a valid one.
fn length(input: &mut Input<'_>, opcode: Opcode, within: Within) -> usize {
    let (info, whole) = (opcode.info(), input.u8());
    let likely = match within {
        _ if whole >= 236 => None,
        Within::Write { left, .. }
            if info.operation == Operation::Write && info.ends() && !info.begins() =>
        {
            Some(left as usize)
        }
        _ => [0, MTU.bytes(), 1 + usize::from(input.u8())]
            .into_iter()
            .cycle()
            .skip(usize::from(whole & 1) * 2)
            .take(3)
            .find(|&len| info.payload.allows(len, MTU.bytes())),
    };
    likely.unwrap_or_else(|| usize::from(input.u16()) % 300)
}

fn extensions(
    input: &mut Input<'_>,
    (opcode, psn): (Opcode, Psn),
    len: usize,
    memory: &Memory,
) -> Extensions {
    let layout = opcode.layout();
    let mut bytes = [0; Extensions::MAX_LEN];
    let given = input.bytes(layout.len());
    bytes[..given.len()].copy_from_slice(given);
    allow(layout, &mut bytes);
    let (parsed, _) = Extensions::parse(layout, &bytes).expect("allowed bytes are extensions");
    match parsed {
        Extensions::Reth(_) => Extensions::Reth(reth(input, opcode, len, memory)),
        Extensions::RethImm(_, imm) => Extensions::RethImm(reth(input, opcode, len, memory), imm),
        Extensions::RethMetadata(_, metadata) => {
            Extensions::RethMetadata(reth(input, opcode, len, memory), metadata)
        }
        Extensions::Atomic(parsed) => Extensions::Atomic(atomic(input, parsed, memory)),
        Extensions::Ieth(rkey) => Extensions::Ieth(match input.u8() {
            0..160 => memory.readable().rkey,
            160..224 => memory.open().rkey,
            224..240 => memory.any(input).rkey,
            _ => rkey,
        }),
        Extensions::Aeth(aeth) => Extensions::Aeth(verdict(input, aeth)),
        Extensions::AethReport(aeth, report) => {
            Extensions::AethReport(verdict(input, aeth), report)
        }
        Extensions::AethAtomicAck(aeth, _) => {
            Extensions::AethAtomicAck(verdict(input, aeth), AtomicValue(word_of(psn)))
        }
        Extensions::Deth(deth) => Extensions::Deth(named(input, deth)),
        Extensions::DethImm(deth, imm) => Extensions::DethImm(named(input, deth), imm),
        other => other,
    }
}

fn verdict(input: &mut Input<'_>, aeth: Aeth) -> Aeth {
    match input.u8() {
        0..192 => {
            let syndrome = input.choose(&[0x1F, 0x1F, 0x02, 0x00, 0x21, 0x60]);
            Aeth { syndrome: Syndrome::from_code(syndrome), ..aeth }
        }
        _ => aeth,
    }
}

fn named(input: &mut Input<'_>, deth: Deth) -> Deth {
    if input.u8() < 240 { Deth { qkey: QKEY, ..deth } } else { deth }
}

/// Where a write goes, or what is read: mostly what is open, and mostly within its bounds.
fn reth(input: &mut Input<'_>, opcode: Opcode, len: usize, memory: &Memory) -> Reth {
    let (odd, reads) = (input.u8(), opcode == Opcode::RcReadRequest);
    let known = match odd {
        0..64 if reads => memory.readable(),
        0..224 => memory.open(),
        _ => memory.any(input),
    };
    let offset = u64::from(input.u16()) % (LEN as u64 + 8);
    let total = match opcode {
        Opcode::RcWriteFirst | Opcode::UcWriteFirst => {
            len as u64 + 1 + u64::from(input.u16()) % 700
        }
        Opcode::RcReadRequest => u64::from(input.u16()) % (LEN as u64 + 1),
        _ => len as u64,
    };
    let (address, length) = match odd {
        0..160 => (offset.min((LEN as u64).saturating_sub(total)), total),
        160..244 => (offset, total),
        244..250 => (offset, u64::from(u32::from_le_bytes(input.array()))),
        _ => (u64::from_le_bytes(input.array()), total),
    };
    Reth {
        address: RemoteAddr(known.address.0.wrapping_add(address)),
        rkey: rkey(input, odd, known.rkey, memory),
        length: DmaLength(length as u32),
    }
}

/// An operation on a word: mostly a whole one, and mostly expected to be what it is.
fn atomic(input: &mut Input<'_>, parsed: AtomicEth, memory: &Memory) -> AtomicEth {
    let odd = input.u8();
    let known = match odd {
        0..96 => memory.open(),
        96..224 => memory.words(),
        _ => memory.any(input),
    };
    let offset = u64::from(input.u16()) % (LEN as u64 + 8);
    let offset = match odd {
        0..192 => (offset & !7).min((LEN as u64 - 8) & !7),
        192..232 => offset & !7,
        232..248 => offset,
        _ => u64::from_le_bytes(input.array()),
    };
    let address = RemoteAddr(known.address.0.wrapping_add(offset));
    let rkey = rkey(input, odd, known.rkey, memory);
    let swap_or_add = parsed.swap_or_add;
    let is = memory.look(address).filter(|_| odd & 1 == 0);
    let compare = AtomicValue(is.unwrap_or(parsed.compare.0));
    AtomicEth { address, rkey, swap_or_add, compare }
}

/// Draws a remote key: mostly `good`, now and then an old key, or one that never was.
fn rkey(input: &mut Input<'_>, odd: u8, good: Rkey, memory: &Memory) -> Rkey {
    match odd % 32 {
        31 => Rkey(good.0 ^ 1 << (input.u8() & 31)),
        30 => memory.stale(input),
        _ => good,
    }
}

/// The answer to what a queue pair has asked for, from a packet of it on: mostly as it must be.
pub fn answer(input: &mut Input<'_>, qpn: Qpn, asked: Asked, part: u32) -> (Headers, Vec<u8>) {
    let odd = input.u8();
    let psn = asked.psn.add(part + u32::from(odd >= 240) * u32::from(input.u8()));
    let left = asked.len.saturating_sub(part * MTU.bytes() as u32) as usize;
    let len = match odd {
        224..232 => usize::from(input.u8()),
        _ => left.min(MTU.bytes()),
    };
    let aeth = Aeth { syndrome: Syndrome::from_code(0x1F), msn: Msn::new(0) };
    let atomic = asked.atomic != (232..236).contains(&odd);
    let (opcode, extensions, len) = match (atomic, part, left <= MTU.bytes()) {
        (true, ..) => {
            let word = AtomicValue(word_of(psn));
            (Opcode::RcAtomicAcknowledge, Extensions::AethAtomicAck(aeth, word), 0)
        }
        (_, 0, true) => (Opcode::RcReadResponseOnly, Extensions::Aeth(aeth), len),
        (_, 0, false) => (Opcode::RcReadResponseFirst, Extensions::Aeth(aeth), len),
        (_, _, false) => (Opcode::RcReadResponseMiddle, Extensions::None, len),
        (_, _, true) => (Opcode::RcReadResponseLast, Extensions::Aeth(aeth), len),
    };
    let headers = Headers { bth: Bth::new(opcode, qpn, psn), extensions };
    (headers, vec![byte_of(psn); len])
}

/// A management datagram, or something like it, all of whose bytes are the same.
pub fn managing(input: &mut Input<'_>) -> (Headers, Vec<u8>) {
    let (odd, source) = (input.u8(), Qpn::new(u32::from(input.u16())));
    let qkey = if odd < 248 { Qkey::GSI } else { QKEY };
    let len = if odd & 31 == 31 { usize::from(input.u8()) } else { 256 };
    let deth = Deth { qkey, source, reserved: 0 };
    let bth = Bth::new(Opcode::UdSendOnly, Qpn::GSI, Psn::new(0));
    (Headers { bth, extensions: Extensions::Deth(deth) }, vec![input.u8(); len])
}

/// A notice that a queue pair's packets were not taken: mostly of a path's peer, and of what was
/// sent to it.
pub fn notice(input: &mut Input<'_>, path: usize, sent: Psn) -> Headers {
    let number = if input.u8() < 224 { peer(path) } else { Qpn::new(u32::from(input.u16())) };
    let near = |input: &mut Input<'_>| sent.add((i32::from(input.u8() & 31) - 16) as u32);
    let run = match input.u8() {
        0..224 => u64::from(near(input).get()) << 32 | u64::from(near(input).get()),
        _ => u64::from_le_bytes(input.array()),
    };
    let syndrome = if input.u8() < 240 { 0x63 } else { input.u8() };
    let aeth = Aeth { syndrome: Syndrome::from_code(syndrome), msn: Msn::new(0) };
    let (opcode, extensions) = match input.u8() {
        0..32 => (Opcode::RcAcknowledge, Extensions::Aeth(aeth)),
        _ => {
            let extensions = Extensions::AethAtomicAck(aeth, AtomicValue(run));
            (Opcode::RcAtomicAcknowledge, extensions)
        }
    };
    Headers { bth: Bth::new(opcode, Qpn::new(0), Psn::new(number.get())), extensions }
}

/// A packet as a frame along a path, its ICRC made to fit.
pub fn frame(path: &Path, headers: Headers, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![0; 1024];
    let mut run = Run::begin(path, &mut frame, IpId(0), 1);
    run.push(path, &mut frame, headers, payload).expect("there is room for one");
    let sealed = run.seal(&mut frame);
    frame.truncate(sealed.len);
    frame
}

/// Any bytes as a frame along a path, with an ICRC that holds.
pub fn sealed(path: &Path, transport: &[u8]) -> Vec<u8> {
    let outer = path.outer().around(transport.len() + 4);
    let mut frame = outer.to_bytes()[..outer.len()].to_vec();
    frame.extend(transport);
    frame.extend(outer.icrc(transport).to_le_bytes());
    frame
}
