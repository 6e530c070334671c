//! A stream of datagrams, with segmentation offload where the kernel has it.

use std::io::{self, ErrorKind};
use std::net::UdpSocket;

use anyhow::Context;
use nix::sys::socket::{getsockopt, setsockopt, sockopt};

use crate::perf::Plan;
use crate::perf::plan::MOST_OF_A_DATAGRAM as MOST;
use crate::perf::shared::ledger::{Ledger, Report};
use crate::perf::shared::pattern::Pattern;
use crate::perf::shared::stream::{Lane, Window};

/// The most datagrams that every kernel with segmentation offload takes at once.
const SEGMENTS: usize = 64;
/// The size of a socket's buffers, in bytes.
const BUFFER: usize = 64 << 20;

/// A socket for datagrams that begin with their number, and another for what is said about them.
pub struct Datagrams {
    socket: UdpSocket,
    words: UdpSocket,
    size: usize,
    /// How many are sent at once.
    batch: usize,
    pattern: Pattern,
    /// The bytes that wait to be sent.
    leaving: Vec<u8>,
    arrived: Vec<u8>,
    ledger: Ledger,
    /// The question of the other end that was not answered yet.
    question: Option<Question>,
    /// The number of the next one.
    next: u64,
    window: Window,
}

impl Datagrams {
    pub fn new(
        plan: &Plan,
        mut open: impl FnMut() -> anyhow::Result<UdpSocket>,
    ) -> anyhow::Result<Self> {
        let size = plan.size;
        let (socket, words) = (open()?, open()?);
        let batch = if plan.offload { segment(&socket, size) } else { 1 };
        let buffer = widen(&socket).context("the socket's buffers")?;
        // What a frame takes in the receiver's memory, at most: twice its length, and some.
        let frames = (buffer / (2 * size * batch + 2048)).clamp(1, 16) as u64;
        let batched = batch as u64;
        Ok(Self {
            socket,
            words,
            size,
            batch,
            pattern: Pattern::new(size),
            leaving: Vec::with_capacity(size * batch),
            arrived: vec![0; 1 << 16],
            ledger: Ledger::default(),
            question: None,
            next: 0,
            window: Window { packets: frames * batched, report: frames.div_ceil(4) * batched },
        })
    }

    /// The bytes of a datagram that tell its number.
    fn numbered(&self) -> usize {
        self.size.min(8)
    }

    /// Enters what lies in the first `len` bytes of what arrived: datagrams of one size.
    fn enter(&mut self, len: usize) {
        let numbered = self.numbered();
        for datagram in self.arrived[..len].chunks(self.size) {
            let mut bytes = self.ledger.here.next.to_le_bytes();
            // Of a small datagram, the number's lower bytes: the others are those of the next.
            let known = numbered.min(datagram.len());
            bytes[..known].copy_from_slice(&datagram[..known]);
            let number = u64::from_le_bytes(bytes);
            let right = *datagram.get(numbered..).unwrap_or_default()
                == self.pattern.of(number, self.size)[numbered..];
            self.ledger.here.enter(number, right);
        }
    }

    /// Hears what is said about the datagrams: a report, or a question.
    fn hear(&mut self) -> anyhow::Result<bool> {
        let mut words = [0; size_of::<Report>() + 1];
        let Some(len) = received(self.words.recv(&mut words))? else { return Ok(false) };
        match words[..len] {
            [last, a, b, c, d, e, f, g, h] => {
                let next = u64::from_le_bytes([a, b, c, d, e, f, g, h]);
                self.question = Some(Question { next, last: last == 1 });
            }
            _ => {
                if let Some((report, [])) = words[..len].split_first_chunk() {
                    self.ledger.hear(report);
                }
            }
        }
        Ok(true)
    }

    /// Takes a question, if there was one, for asked.
    fn answer(&mut self) -> bool {
        let Some(Question { next, last }) = self.question.take() else { return false };
        self.ledger.here.skip(next);
        self.ledger.ended |= last;
        self.ledger.asked = true;
        true
    }
}

/// How far the other end is.
struct Question {
    /// The number of the next datagram.
    next: u64,
    /// Whether no packet follows.
    last: bool,
}

/// Has a socket cut what it is given into datagrams of one size, and receive such at once; how
/// many.
fn segment(socket: &UdpSocket, size: usize) -> usize {
    // Only whole datagrams are cut, not what is to be fragmented.
    let around = 48;
    let room = getsockopt(socket, sockopt::IpMtu).map_or(0, |mtu| mtu as usize);
    let batch = (MOST / size).min(SEGMENTS);
    if batch < 2 || size + around > room {
        return 1;
    }
    let set = setsockopt(socket, sockopt::UdpGsoSegment, &(size as i32))
        .and_then(|()| setsockopt(socket, sockopt::UdpGroSegment, &true));
    // Older kernels have none of it.
    if set.is_ok() { batch } else { 1 }
}

/// Has a socket's buffers hold much; how many bytes the receiver's does.
fn widen(socket: &UdpSocket) -> nix::Result<usize> {
    // Who has no privilege gets as much as there is for everybody.
    setsockopt(socket, sockopt::RcvBufForce, &BUFFER)
        .or_else(|_| setsockopt(socket, sockopt::RcvBuf, &BUFFER))?;
    setsockopt(socket, sockopt::SndBufForce, &BUFFER)
        .or_else(|_| setsockopt(socket, sockopt::SndBuf, &BUFFER))?;
    getsockopt(socket, sockopt::RcvBuf)
}

/// How much was received, if anything was there.
fn received(result: io::Result<usize>) -> anyhow::Result<Option<usize>> {
    match result {
        Ok(len) => Ok(Some(len)),
        Err(why) if why.kind() == ErrorKind::WouldBlock => Ok(None),
        Err(why) => Err(why).context("receiving datagrams"),
    }
}

impl Lane for Datagrams {
    fn device(&self) -> Option<&'static str> {
        None
    }

    fn window(&self) -> Window {
        self.window
    }

    fn of_a_message(&self) -> u64 {
        1
    }

    #[inline]
    fn next(&self) -> u64 {
        self.next
    }

    #[inline]
    fn push(&mut self) -> bool {
        if self.leaving.len() == self.size * self.batch && self.flush().is_err() {
            return false;
        }
        let numbered = self.numbered();
        self.leaving.extend_from_slice(&self.next.to_le_bytes()[..numbered]);
        self.leaving.extend_from_slice(&self.pattern.of(self.next, self.size)[numbered..]);
        self.next += 1;
        true
    }

    fn flush(&mut self) -> anyhow::Result<()> {
        if !self.leaving.is_empty() {
            super::ping_pong::insist("room for datagrams", || self.socket.send(&self.leaving))?;
            self.leaving.clear();
        }
        Ok(())
    }

    fn ask(&mut self, last: bool) -> anyhow::Result<()> {
        let mut question = [0; 9];
        question[0] = last.into();
        question[1..].copy_from_slice(&self.next.to_le_bytes());
        self.words.send(&question).context("asking for a report")?;
        Ok(())
    }

    fn report(&mut self) -> bool {
        self.words.send(&self.ledger.report()).is_ok()
    }

    fn receive(&mut self) -> anyhow::Result<bool> {
        let arrived = received(self.socket.recv(&mut self.arrived))?;
        if let Some(len) = arrived {
            self.enter(len);
            return Ok(true);
        }
        // Only a look that finds nothing behind the question has seen all that was sent before it.
        Ok(self.answer() || self.hear()?)
    }

    #[inline]
    fn ledger(&mut self) -> &mut Ledger {
        &mut self.ledger
    }
}
