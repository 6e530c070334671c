//! Where the body of a long message is, for the receiver that pulls it.

use bytes::{Buf, Bytes};
use doorbell_verbs::RemoteMemory;

/// The pieces of the sender's memory that a long body consists of, in their order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Description(pub Vec<Memory>);

/// A piece of the sender's memory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Memory {
    pub len: u64,
    /// How the memory is read through each device that the two endpoints have in common.
    pub remote: Vec<RemoteMemory>,
    /// Where the memory is in the sender's process, if the sender has told it.
    pub address: Option<u64>,
}

/// The flag of a piece behind whose memory its address follows.
const ADDRESSED: u8 = 8;

/// The longest description of several pieces: the shortest payload that every endpoint takes.
pub const LONGEST: usize = 512;

/// Returns the most pieces of memory that a description tells of, if each is read through so many
/// devices. Bodies of more pieces are joined first, so that a description is not longer than the
/// [longest](LONGEST).
pub fn most_pieces(devices: usize) -> usize {
    LONGEST / (2 + size_of::<u64>() + devices * RemoteMemory::ENCODED)
}

/// Describes one piece of a body: memory to be read through each device, with its address in this
/// process if the receiver may know that.
pub fn describe(into: &mut Vec<u8>, remote: &[RemoteMemory], address: Option<u64>) {
    into.push(if address.is_some() { ADDRESSED } else { 0 });
    into.push(few(remote.len()));
    remote.iter().for_each(|memory| into.extend_from_slice(&memory.to_bytes()));
    into.extend(address.into_iter().flat_map(u64::to_be_bytes));
}

/// Returns a number that has room in a byte: there are few devices.
fn few(number: usize) -> u8 {
    debug_assert!(number <= usize::from(u8::MAX), "{number} is not a few");
    u8::try_from(number).unwrap_or(u8::MAX)
}

impl Description {
    /// Decodes the description of a body of `len` bytes, or returns `None` if the bytes are none.
    pub fn from_bytes(mut bytes: Bytes, len: usize) -> Option<Self> {
        let mut pieces = Vec::new();
        while !bytes.is_empty() {
            let address = match bytes.get_u8() {
                0 => 0,
                ADDRESSED => size_of::<u64>(),
                _ => return None,
            };
            let devices = usize::from(bytes.try_get_u8().ok()?);
            let memory = devices * RemoteMemory::ENCODED;
            if devices == 0 || bytes.len() < memory + address {
                return None;
            }
            let mut remote = bytes.split_to(memory);
            let address = (address > 0).then(|| bytes.get_u64());
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
            pieces.extend((len > 0).then_some(Memory { len, remote, address }));
        }
        let mut lengths = pieces.iter().map(|piece| piece.len);
        let sum = lengths.try_fold(0_u64, u64::checked_add);
        (sum == Some(len as u64)).then_some(Self(pieces))
    }
}
