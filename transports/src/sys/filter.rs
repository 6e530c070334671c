//! Filters that the kernel runs on each frame before it wakes or copies for a socket.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use libc::{sock_filter, sock_fprog};

use super::set_option;

/// What a filter returns for a frame to be taken whole.
const ALL: u32 = u32::MAX;

const LOAD_WORD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
const LOAD_HALF: u16 = (libc::BPF_LD | libc::BPF_H | libc::BPF_ABS) as u16;
const AND: u16 = (libc::BPF_ALU | libc::BPF_AND | libc::BPF_K) as u16;
const EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;

/// A test of some bytes of a frame: of a mask and a value in `either`, one must fit them.
#[derive(Clone, Debug)]
pub(crate) struct Test {
    pub at: usize,
    pub width: Width,
    pub either: Vec<(u32, u32)>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Width {
    Half,
    Word,
}

/// A program that takes a frame when it passes every test, and drops it unseen otherwise; a frame
/// too short for a test does not pass it.
pub(crate) fn program(tests: &[Test]) -> Vec<sock_filter> {
    let step = |code, k| sock_filter { code, jt: 0, jf: 0, k };
    let mut program = Vec::new();
    for test in tests {
        let load = if test.width == Width::Word { LOAD_WORD } else { LOAD_HALF };
        for (index, &(mask, value)) in test.either.iter().enumerate() {
            // Over the alternatives behind this one, three steps each, and over the end.
            let over = 3 * (test.either.len() - index - 1) + 1;
            program.push(step(load, test.at as u32));
            program.push(step(AND, mask));
            program.push(sock_filter { jt: over as u8, ..step(EQUAL, value) });
        }
        program.push(step(RETURN, 0));
    }
    program.push(step(RETURN, ALL));
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
