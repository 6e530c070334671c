//! Filters that the kernel runs on each frame before it wakes or copies for a socket.

use std::io;
use std::os::fd::BorrowedFd;

use doorbell_core::wire::Mac;
use socket2::{SockFilter, SockRef};

use super::error::Context;

/// The value that a filter returns to take a frame whole.
const ALL: u32 = u32::MAX;

/// The offset at which a filter loads whom a frame is for, as the kernel judges.
const KIND: u32 = (libc::SKF_AD_OFF + libc::SKF_AD_PKTTYPE) as u32;

const LOAD_WORD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
const LOAD_HALF: u16 = (libc::BPF_LD | libc::BPF_H | libc::BPF_ABS) as u16;
const AND: u16 = (libc::BPF_ALU | libc::BPF_AND | libc::BPF_K) as u16;
const EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
const JUMP: u16 = (libc::BPF_JMP | libc::BPF_JA) as u16;
const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;

/// A test of some bytes of a frame, which are masked and then compared with a value, for each mask
/// and value in `either`: the frame passes if the bytes equal one of the values.
///
/// A test is in one piece of memory. A device that applies tests by itself has just come back from
/// the kernel, and finds little in the nearest cache.
#[derive(Clone, Copy, Debug)]
pub struct Test {
    at: u32,
    load: u16,
    /// Ones for as many bits as are loaded.
    width: u32,
    /// The masks, each with its value. If there are fewer than three pairs, the last one is
    /// repeated.
    either: [(u32, u32); 3],
}

impl Test {
    /// Tests that the two bytes at `at` are `value`, where the mask has ones.
    pub fn half(at: usize, mask: u16, value: u16) -> Self {
        Self::half_of(at, &[(mask.into(), value.into())])
    }

    /// Tests that the two bytes at `at` are one of these values, each where its mask has ones.
    pub fn half_of(at: usize, either: &[(u32, u32)]) -> Self {
        Self { load: LOAD_HALF, width: 0xFFFF, ..Self::word(at, either) }
    }

    /// Tests that the four bytes at `at` are one of these values, each where its mask has ones.
    pub fn word(at: usize, either: &[(u32, u32)]) -> Self {
        let either = std::array::from_fn(|place| either[place.min(either.len() - 1)]);
        Self { at: at as u32, load: LOAD_WORD, width: !0, either }
    }

    /// Tests that a frame is for this station. Frames for others come where a switch floods, and on
    /// cables that have no notion of addresses.
    pub fn to(Mac([a, b, c, d, e, f]): Mac) -> [Self; 2] {
        let first = Self::word(0, &[(!0, u32::from_be_bytes([a, b, c, d]))]);
        [first, Self::half(4, !0, u16::from_be_bytes([e, f]))]
    }

    /// Tests that a frame is for this interface, as the kernel judges. The kernel shows frames of
    /// virtual networks on the interface beneath, without their tag, and judges them to be for
    /// others.
    pub fn to_interface() -> Self {
        Self { at: KIND, ..Self::word(0, &[(!0, libc::PACKET_HOST.into())]) }
    }

    /// Returns whether a frame passes this test. `kind` is the kernel's judgement of whom the frame
    /// is for.
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

/// Returns whether a frame passes all tests of a list, as the kernel's [program] of that list would
/// say. `kind` is the kernel's judgement of whom the frame is for.
#[inline]
pub(crate) fn takes(all: &[Test], frame: &[u8], kind: u8) -> bool {
    all.iter().all(|test| test.passes(frame, kind))
}

/// Compiles a program that takes a frame if the frame passes every test of one of the lists, and
/// otherwise drops the frame before the process sees it. A frame too short for a test is dropped.
fn program(any: &[Vec<Test>]) -> Vec<SockFilter> {
    let mut program: Vec<_> = any.iter().flat_map(|tests| all(tests)).collect();
    program.push(step(RETURN, 0));
    program
}

fn step(code: u16, k: u32) -> SockFilter {
    SockFilter::new(code, 0, 0, k)
}

/// Compiles steps that take a frame that passes every test, and go on behind for other frames.
fn all(tests: &[Test]) -> Vec<SockFilter> {
    let mut program = vec![step(RETURN, ALL)];
    // From the last test to the first: each jumps over what stands behind it.
    for test in tests.iter().rev() {
        program.splice(..0, one(test, program.len()));
    }
    program
}

/// Compiles one test, in front of `behind` steps that are for frames that pass it.
fn one(test: &Test, behind: usize) -> Vec<SockFilter> {
    let mut program = vec![step(JUMP, behind as u32)];
    let mut either = test.either.to_vec();
    either.dedup();
    for &(mask, value) in either.iter().rev() {
        // A frame that has this value jumps over the comparisons with the other values.
        let equal = SockFilter::new(EQUAL, program.len() as u8, 0, value);
        let all = mask == test.width;
        let and = (!all).then_some(step(AND, mask));
        let asked = [Some(step(test.load, test.at)), and, Some(equal)];
        program = asked.into_iter().flatten().chain(program).collect();
    }
    program
}

/// Has the kernel pass to a socket only the frames that pass every test of one of the lists.
pub(crate) fn attach(socket: BorrowedFd<'_>, any: &[Vec<Test>]) -> io::Result<()> {
    SockRef::from(&socket).attach_filter(&program(any)).context("SO_ATTACH_FILTER")
}

/// Has the kernel pass all frames to a socket again.
pub(crate) fn detach(socket: BorrowedFd<'_>) -> io::Result<()> {
    SockRef::from(&socket).detach_filter().context("SO_DETACH_FILTER")
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
