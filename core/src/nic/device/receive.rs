//! How frames, and records of shared memory, become packets that an inbox takes.

use crate::encap::{Opener, Outer, PathId, shm_record};
use crate::nic::device::flow::Flow;
use crate::nic::device::inbox::Inbox;
use crate::sync::AtomicU64;
use crate::wire::{AfterBth, Bth, Malformed, Packet};

/// Takes a frame apart, and gives its packets to `inbox`. `segment` is the size of each packet,
/// where the device says that it received a run.
#[inline]
pub fn receive_frame<I: Inbox>(
    inbox: &mut I,
    opener: &mut Opener,
    frame: &[u8],
    segment: Option<u16>,
) {
    let mut arrival = match opener.open(frame, segment) {
        Ok(arrival) => arrival,
        Err(why) => return inbox.malformed(why),
    };
    while let Some(sealed) = arrival.next_sealed() {
        let Some(packet) = arrival.check(sealed) else {
            inbox.malformed(arrival.wrong());
            continue;
        };
        let (flow, outer) = (arrival.flow(), arrival.outer());
        if let Some((bth, behind)) = Packet::glance(packet)
            && inbox.fast_path(Flow::Network(flow, outer), bth, behind)
        {
            continue;
        }
        any_of_frame(inbox, flow, outer, packet);
    }
}

/// Gives `inbox` the packet of `len` bytes in a [record](crate::encap::shm_record), whose first
/// word was loaded as `first`. Returns whether it was a packet: what is none is reported to `inbox`
/// as malformed.
#[inline]
#[must_use]
pub fn receive_record<I: Inbox>(
    inbox: &mut I,
    link: PathId,
    record: &[AtomicU64],
    first: u64,
    len: usize,
) -> bool {
    if let Some((bth, behind)) = shm_record::glance(record, first, len)
        && inbox.fast_path(Flow::Link(link), bth, behind)
    {
        return true;
    }
    any_of_record(inbox, link, record, first, len)
}

/// Takes any packet of a frame. This is a function of its own, so that the fast path stays short.
#[inline(never)]
fn any_of_frame<I: Inbox>(inbox: &mut I, flow: u64, outer: &Outer, packet: &[u8]) {
    let taken = Packet::begin(packet)
        .and_then(|(bth, rest)| by_opcode(inbox, Flow::Network(flow, outer), bth, rest));
    if let Err(why) = taken {
        inbox.malformed(why);
    }
}

/// Takes any packet of a record. This is a function of its own, so that the fast path stays short.
#[inline(never)]
fn any_of_record<I: Inbox>(
    inbox: &mut I,
    link: PathId,
    record: &[AtomicU64],
    first: u64,
    len: usize,
) -> bool {
    let taken = shm_record::begin(record, first, len)
        .and_then(|bth| by_opcode(inbox, Flow::Link(link), bth, shm_record::Rest { record, len }));
    taken.inspect_err(|why| inbox.malformed(*why)).is_ok()
}

/// Does something with the row of the table of opcodes for a packet's opcode. For the opcodes that
/// are named, which are the most common, the row is a constant, so that much of what follows is
/// decided when this is compiled.
macro_rules! by_row {
    ($opcode:expr, [$($known:ident),+], $row:ident => $then:expr, $other:ident => $else:expr) => {
        match $opcode {
            $($crate::wire::Opcode::$known => {
                let $row = const { *$crate::wire::Opcode::$known.info() };
                $then
            })+
            $other => $else,
        }
    };
}
pub(crate) use by_row;

/// Takes a packet by its opcode. Parsing the headers of the common opcodes takes a few loads.
#[inline(always)]
fn by_opcode<I: Inbox>(
    inbox: &mut I,
    flow: Flow<'_>,
    bth: Bth,
    behind: impl AfterBth,
) -> Result<(), Malformed> {
    by_row!(
        bth.opcode(),
        [
            RcReadRequest,
            RcReadResponseOnly,
            RcFetchAdd,
            RcCompareSwap,
            RcAtomicAcknowledge,
            RcAcknowledge
        ],
        row => behind.parse(bth, row.layout).map(|packet| inbox.packet_of_opcode(flow, packet, row)),
        other => behind.parse(bth, other.layout()).map(|packet| inbox.packet(flow, &packet))
    )
}
