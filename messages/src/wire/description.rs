//! Where the body of a long message is, for the receiver that pulls it.

use bytes::{Buf, Bytes};
use doorbell_verbs::RemoteMemory;

/// The parts of a long body, in their order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Description(pub Vec<Part>);

/// A part of a long body.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Part {
    /// Bytes that came with the description.
    Here(Bytes),
    /// Memory of the sender.
    There(Memory),
}

/// A piece of the sender's memory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Memory {
    pub len: u64,
    /// How the memory is read through each device that the two endpoints have in common.
    pub remote: Vec<RemoteMemory>,
    /// Where the memory is in the sender's process, if the sender has told it.
    pub address: Option<u64>,
}

/// The most bytes of a part that came with the description: those that are in no whole word.
const FEW: usize = 7;

/// The bit of the lengths of a piece which says that an address follows the memory.
const ADDRESSED: usize = 8;

/// The longest description of several pieces: the shortest payload that every endpoint takes.
pub const LONGEST: usize = 512;

/// Returns the most pieces of memory that a description tells of, if each is read through so many
/// devices. Bodies of more pieces are joined first, so that a description is not longer than the
/// [longest](LONGEST).
pub fn most_pieces(devices: usize) -> usize {
    LONGEST / (2 + 2 * FEW + size_of::<u64>() + devices * RemoteMemory::ENCODED)
}

/// Describes one piece of a body: a few bytes, memory to be read through each device, with its
/// address in this process if the receiver may know that, and a few bytes more.
pub fn describe(
    into: &mut Vec<u8>,
    before: &[u8],
    remote: &[RemoteMemory],
    address: Option<u64>,
    behind: &[u8],
) {
    debug_assert!(before.len() <= FEW && behind.len() <= FEW);
    let addressed = if address.is_some() { ADDRESSED } else { 0 };
    into.push(few(before.len() << 4 | addressed | behind.len()));
    into.push(few(remote.len()));
    into.extend_from_slice(before);
    remote.iter().for_each(|memory| into.extend_from_slice(&memory.to_bytes()));
    into.extend(address.into_iter().flat_map(u64::to_be_bytes));
    into.extend_from_slice(behind);
}

/// Returns a number that has room in a byte: there are few devices, and few bytes around a piece.
fn few(number: usize) -> u8 {
    debug_assert!(number <= usize::from(u8::MAX), "{number} is not a few");
    u8::try_from(number).unwrap_or(u8::MAX)
}

impl Description {
    /// Decodes the description of a body of `len` bytes, or returns `None` if the bytes are none.
    pub fn from_bytes(mut bytes: Bytes, len: usize) -> Option<Self> {
        let mut parts = Vec::new();
        while !bytes.is_empty() {
            let lengths = usize::from(bytes.get_u8());
            let devices = usize::from(bytes.try_get_u8().ok()?);
            let (before, behind) = (lengths >> 4, lengths & FEW);
            let address = if lengths & ADDRESSED != 0 { size_of::<u64>() } else { 0 };
            let needed = before + devices * RemoteMemory::ENCODED + address + behind;
            if before > FEW || devices == 0 || bytes.len() < needed {
                return None;
            }
            let before = bytes.split_to(before);
            let mut remote = bytes.split_to(devices * RemoteMemory::ENCODED);
            let address = (address > 0).then(|| bytes.get_u64());
            let behind = bytes.split_to(behind);
            let remote: Vec<_> = std::iter::from_fn(|| {
                let memory = RemoteMemory::from_prefix(&remote)?;
                remote.advance(RemoteMemory::ENCODED);
                Some(memory)
            })
            .collect();
            let len = remote.first()?.len();
            if remote.iter().any(|memory| memory.len() != len) {
                return None;
            }
            parts.extend((!before.is_empty()).then_some(Part::Here(before)));
            parts.extend((len > 0).then_some(Part::There(Memory { len, remote, address })));
            parts.extend((!behind.is_empty()).then_some(Part::Here(behind)));
        }
        let mut lengths = parts.iter().map(Part::len);
        let sum = lengths.try_fold(0_u64, u64::checked_add);
        (sum == Some(len as u64)).then_some(Self(parts))
    }
}

impl Part {
    pub fn len(&self) -> u64 {
        match self {
            Self::Here(bytes) => bytes.len() as u64,
            Self::There(memory) => memory.len,
        }
    }
}
