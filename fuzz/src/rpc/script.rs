//! The messages of RPC, and how they are read from an input.

use doorbell_am::{ReplyId, RequestId};

use super::input::Input;

pub const HELLO: RequestId<[u64; 3]> = RequestId::new(0, "rpc hello");
pub const CALL: RequestId<[u64; 6]> = RequestId::new(1, "rpc call");
pub const CANCEL: RequestId<[u64; 2]> = RequestId::new(2, "rpc cancel");
pub const RESPONSE: RequestId<[u64; 3]> = RequestId::new(3, "rpc response");
pub const PIECE: RequestId<[u64; 3]> = RequestId::new(4, "rpc piece");
pub const GRANT: RequestId<[u64; 3]> = RequestId::new(5, "rpc grant");
pub const LEND: RequestId<[u64; 2]> = RequestId::new(6, "rpc lend");
pub const WRITTEN: RequestId<[u64; 3]> = RequestId::new(7, "rpc written");
pub const LEAVE: RequestId<[u64; 1]> = RequestId::new(8, "rpc leave");
pub const LEFT: RequestId<[u64; 1]> = RequestId::new(9, "rpc left");
pub const WELCOME: ReplyId<[u64; 5]> = ReplyId::new(0, "rpc welcome");
pub const ANSWER: ReplyId<[u64; 2]> = ReplyId::new(1, "rpc answer");
pub const GRANTED: ReplyId<[u64; 3]> = ReplyId::new(2, "rpc granted");

/// The version of RPC.
pub const VERSION: u64 = 4;

/// The most messages of an input.
pub const MOST: usize = 64;

/// The longest payload of a message.
const LONGEST: usize = 4096;

/// The number that stands for a method's path on the wire.
pub fn number_of(path: &str) -> u64 {
    path.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Draws a word of a message: one of `some`, a small number, or any number.
pub fn word(input: &mut Input<'_>, some: &[u64]) -> u64 {
    match input.u8() {
        small @ 0..=31 => small.into(),
        32..=63 => u64::from_le_bytes(input.array()),
        other => some[usize::from(other) % some.len()],
    }
}

/// Words as [`word`] has them.
pub fn words<const N: usize>(input: &mut Input<'_>, some: &[u64]) -> [u64; N] {
    std::array::from_fn(|_| word(input, some))
}

/// The word of flags: the length of metadata, a code, and whether a stream or a body follows or the
/// call was accepted.
pub fn flags(input: &mut Input<'_>) -> u64 {
    let [metadata, code, bits] = input.array::<3>();
    match metadata {
        255 => u64::from_le_bytes(input.array()),
        _ => u64::from(metadata % 64) | u64::from(code % 20) << 16 | u64::from(bits % 16) << 24,
    }
}

/// Draws the payload of a message: bytes of the input, or one byte repeated.
pub fn payload(input: &mut Input<'_>) -> Vec<u8> {
    match input.u8() {
        255 => vec![input.u8(); usize::from(input.u16()) % LONGEST],
        len => input.bytes(len.into()).to_vec(),
    }
}
