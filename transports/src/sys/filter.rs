//! Filters that the kernel runs on each frame before it wakes or copies for a socket.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use doorbell_core::wire::Mac;
use libc::{c_int, sock_filter, sock_fprog};

use super::set_option;

/// What a filter returns for a frame to be taken whole.
const ALL: u32 = u32::MAX;

/// Where the kernel tells whom a frame is for.
const KIND: u32 = (libc::SKF_AD_OFF + libc::SKF_AD_PKTTYPE) as u32;

const LOAD_WORD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
const LOAD_HALF: u16 = (libc::BPF_LD | libc::BPF_H | libc::BPF_ABS) as u16;
const AND: u16 = (libc::BPF_ALU | libc::BPF_AND | libc::BPF_K) as u16;
const EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
const JUMP: u16 = (libc::BPF_JMP | libc::BPF_JA) as u16;
const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;

/// A test of some bytes of a frame: of a mask and a value in `either`, one must fit them.
///
/// It is in one piece, for who applies it by himself has just come back from the kernel, and finds
/// little in the next cache.
#[derive(Clone, Copy, Debug)]
pub struct Test {
    at: u32,
    load: u16,
    /// Ones for as many bits as are loaded.
    width: u32,
    /// The last of them again and again, if there are fewer.
    either: [(u32, u32); 3],
}

impl Test {
    /// Whether the two bytes at `at` are `value`, where the mask has ones.
    pub fn half(at: usize, mask: u16, value: u16) -> Self {
        Self::half_of(at, &[(mask.into(), value.into())])
    }

    /// Whether the two bytes at `at` are one of these values, each where its mask has ones.
    pub fn half_of(at: usize, either: &[(u32, u32)]) -> Self {
        Self { load: LOAD_HALF, width: 0xFFFF, ..Self::word(at, either) }
    }

    /// Whether the four bytes at `at` are one of these values, each where its mask has ones.
    pub fn word(at: usize, either: &[(u32, u32)]) -> Self {
        let either = std::array::from_fn(|place| either[place.min(either.len() - 1)]);
        Self { at: at as u32, load: LOAD_WORD, width: !0, either }
    }

    /// Whether the frame is for this station: others come where a switch floods, and on cables that
    /// have no notion of addresses.
    pub fn to(Mac([a, b, c, d, e, f]): Mac) -> [Self; 2] {
        let first = Self::word(0, &[(!0, u32::from_be_bytes([a, b, c, d]))]);
        [first, Self::half(4, !0, u16::from_be_bytes([e, f]))]
    }

    /// Whether the frame is for this interface, by the kernel's judgement: it also knows of those
    /// of virtual networks, which it shows to who listens beneath, without their tag.
    pub fn to_interface() -> Self {
        Self { at: KIND, ..Self::word(0, &[(!0, libc::PACKET_HOST.into())]) }
    }

    /// Whether a frame passes it, which the kernel says is of this kind.
    #[inline]
    fn passes(&self, frame: &[u8], kind: u8) -> bool {
        let at = frame.get(self.at as usize..).unwrap_or_default();
        let found = match (self.at, self.load) {
            (KIND, _) => Some(kind.into()),
            (_, LOAD_WORD) => at.first_chunk().map(|word| u32::from_be_bytes(*word)),
            _ => at.first_chunk().map(|half| u16::from_be_bytes(*half).into()),
        };
        found.is_some_and(|it| self.either.iter().any(|&(mask, value)| it & mask == value))
    }
}

/// What a [program](program) of one list says of a frame, which the kernel says is of this kind.
#[inline]
pub(crate) fn takes(all: &[Test], frame: &[u8], kind: u8) -> bool {
    all.iter().all(|test| test.passes(frame, kind))
}

/// A program that takes a frame when it passes every test of one of the lists, and drops it unseen
/// otherwise; a frame too short for a test passes none of them that follow.
pub(crate) fn program(any: &[Vec<Test>]) -> Vec<sock_filter> {
    let mut program: Vec<_> = any.iter().flat_map(|tests| all(tests)).collect();
    program.push(step(RETURN, 0));
    program
}

fn step(code: u16, k: u32) -> sock_filter {
    sock_filter { code, jt: 0, jf: 0, k }
}

/// Takes a frame that passes every test, and falls through for others.
fn all(tests: &[Test]) -> Vec<sock_filter> {
    let mut program = vec![step(RETURN, ALL)];
    // From the end, so that the way past it is known.
    for test in tests.iter().rev() {
        program = [one(test, program.len()), program].concat();
    }
    program
}

/// One test, in front of so many steps that are for those who pass it.
fn one(test: &Test, behind: usize) -> Vec<sock_filter> {
    let mut program = vec![step(JUMP, behind as u32)];
    let mut either = test.either.to_vec();
    either.dedup();
    for &(mask, value) in either.iter().rev() {
        // Whoever has this value passes over what is asked of others.
        let equal = sock_filter { jt: program.len() as u8, ..step(EQUAL, value) };
        let all = mask == test.width;
        let and = (!all).then_some(step(AND, mask));
        let asked = [Some(step(test.load, test.at)), and, Some(equal)];
        program = asked.into_iter().flatten().chain(program).collect();
    }
    program
}

/// Has a socket see only the frames that a program takes.
pub(crate) fn attach(socket: BorrowedFd<'_>, program: &mut [sock_filter]) -> io::Result<()> {
    let len = program.len() as u16;
    let program = sock_fprog { len, filter: program.as_mut_ptr() };
    set_option(
        socket.as_raw_fd(),
        libc::SOL_SOCKET,
        libc::SO_ATTACH_FILTER,
        &program,
        "SO_ATTACH_FILTER",
    )
}

/// Has it see all again.
pub(crate) fn detach(socket: BorrowedFd<'_>) -> io::Result<()> {
    let (fd, none): (_, c_int) = (socket.as_raw_fd(), 0);
    set_option(fd, libc::SOL_SOCKET, libc::SO_DETACH_FILTER, &none, "SO_DETACH_FILTER")
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOST: u8 = libc::PACKET_HOST;

    #[test]
    fn a_frame_is_taken_that_passes_all_tests() {
        let all = [
            Test::word(2, &[(0xFFFF_0000, 0x0102_0000), (0xFF, 9)]),
            Test::half(0, 0xFF00, 0x0700),
            Test::to_interface(),
        ];
        let takes = |frame: &[u8], kind| takes(&all, frame, kind);
        assert!(takes(&[7, 0, 1, 2, 3, 4], HOST) && takes(&[7, 1, 0, 0, 0, 9], HOST));
        assert!(!takes(&[8, 0, 1, 2, 3, 4], HOST), "another half");
        assert!(!takes(&[7, 0, 1, 3, 3, 4], HOST), "neither word");
        assert!(!takes(&[7, 0, 1, 2, 3], HOST) && !takes(&[], HOST), "too short");
        assert!(!takes(&[7, 0, 1, 2, 3, 4], libc::PACKET_OTHERHOST));
    }
}
