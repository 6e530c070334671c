//! Filters that the kernel runs on each frame before it wakes or copies for a socket.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use doorbell_core::wire::Mac;
use libc::{c_int, sock_filter, sock_fprog};

use super::set_option;

/// What a filter returns for a frame to be taken whole.
const ALL: u32 = u32::MAX;

const LOAD_WORD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
const LOAD_HALF: u16 = (libc::BPF_LD | libc::BPF_H | libc::BPF_ABS) as u16;
const AND: u16 = (libc::BPF_ALU | libc::BPF_AND | libc::BPF_K) as u16;
const EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
const JUMP: u16 = (libc::BPF_JMP | libc::BPF_JA) as u16;
const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;

/// A test of some bytes of a frame: of a mask and a value in `either`, one must fit them.
#[derive(Clone, Debug)]
pub struct Test {
    at: u32,
    load: u16,
    /// Ones for as many bits as are loaded.
    width: u32,
    either: Vec<(u32, u32)>,
}

impl Test {
    /// Whether the two bytes at `at` are `value`, where the mask has ones.
    pub fn half(at: usize, mask: u16, value: u16) -> Self {
        Self::half_of(at, &[(mask.into(), value.into())])
    }

    /// Whether the two bytes at `at` are one of these values, each where its mask has ones.
    pub fn half_of(at: usize, either: &[(u32, u32)]) -> Self {
        Self { at: at as u32, load: LOAD_HALF, width: 0xFFFF, either: either.to_vec() }
    }

    /// Whether the four bytes at `at` are one of these values, each where its mask has ones.
    pub fn word(at: usize, either: &[(u32, u32)]) -> Self {
        Self { at: at as u32, load: LOAD_WORD, width: !0, either: either.to_vec() }
    }

    /// Whether the frame is for this station: others come where a switch floods, and on cables that
    /// have no notion of addresses.
    pub fn to(Mac([a, b, c, d, e, f]): Mac) -> [Self; 2] {
        let first = Self::word(0, &[(!0, u32::from_be_bytes([a, b, c, d]))]);
        [first, Self::half(4, !0, u16::from_be_bytes([e, f]))]
    }

    /// Whether the frame is for this interface, by the kernel's judgement: it also knows of those of
    /// virtual networks, which it shows to who listens beneath, without their tag.
    pub fn to_interface() -> Self {
        let at = (libc::SKF_AD_OFF + libc::SKF_AD_PKTTYPE) as u32;
        Self { at, ..Self::word(0, &[(!0, libc::PACKET_HOST.into())]) }
    }
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
    for &(mask, value) in test.either.iter().rev() {
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
