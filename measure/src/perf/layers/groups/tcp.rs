//! Links between two members by a TCP socket, which both poll.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::net::TcpStream;
use std::sync::Mutex;
use std::task::Poll;

use bytes::Bytes;
use doorbell_messages::collectives::Links;

use crate::perf::shared::patience::Patience;
use doorbell_verbs::floor::locked;

/// How often a socket is looked at before other futures of the task have their turn.
const LOOKS: u32 = 16;
/// The bytes in front of each message: its tag and its length.
const HEADER: usize = 16;
/// The longest message that is received.
const LONGEST: u64 = 1 << 30;

/// Links to the one other member of a group of two.
pub struct Sockets {
    stream: TcpStream,
    rank: usize,
    /// A lock that a task holds while it sends a message, so that messages leave whole.
    sends: tokio::sync::Mutex<()>,
    incoming: Mutex<Incoming>,
}

/// The messages of the other member that have come, the last one perhaps in part.
#[derive(Default)]
struct Incoming {
    header: [u8; HEADER],
    body: Option<Vec<u8>>,
    /// How many bytes of the header, or of the body if there is one, have come.
    came: usize,
    /// The messages that have come, and that nobody has received.
    messages: VecDeque<(u64, Bytes)>,
}

/// The error of a socket whose other end is gone.
#[derive(Debug, thiserror::Error)]
#[error("the socket to the other end: {0}")]
pub struct Lost(String);

impl Sockets {
    /// Takes a socket that does not block.
    pub fn new(stream: TcpStream, rank: usize) -> Self {
        Self { stream, rank, sends: Default::default(), incoming: Default::default() }
    }

    /// Does something until it does not have to wait. Other futures of the task run meanwhile.
    async fn insist<T>(
        &self,
        what: &str,
        mut does: impl FnMut() -> io::Result<T>,
    ) -> Result<T, Lost> {
        let mut patience = Patience::default();
        poll_fn(|context| {
            for _ in 0..LOOKS {
                match does() {
                    Ok(done) => return Poll::Ready(Ok(done)),
                    Err(why) if why.kind() == ErrorKind::WouldBlock => {}
                    Err(why) => return Poll::Ready(Err(Lost(why.to_string()))),
                }
                if let Err(why) = patience.spend(what) {
                    return Poll::Ready(Err(Lost(why.to_string())));
                }
            }
            context.waker().wake_by_ref();
            Poll::Pending
        })
        .await
    }
}

impl Links for Sockets {
    type Error = Lost;

    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        2
    }

    async fn send(&self, _: usize, tag: u64, body: Bytes) -> Result<(), Lost> {
        let mut header = [0; HEADER];
        header[..8].copy_from_slice(&tag.to_le_bytes());
        header[8..].copy_from_slice(&(body.len() as u64).to_le_bytes());
        let _turn = self.sends.lock().await;
        let mut sent = 0;
        while sent < HEADER + body.len() {
            let head = &header[sent.min(HEADER)..];
            let rest = &body[sent.saturating_sub(HEADER)..];
            let pieces = [IoSlice::new(head), IoSlice::new(rest)];
            sent += self
                .insist("room for a message", || (&self.stream).write_vectored(&pieces))
                .await?;
        }
        Ok(())
    }

    async fn receive(&self, _: usize, tag: u64, mask: u64) -> Result<(u64, Bytes), Lost> {
        self.insist("a message", || {
            let mut incoming = locked(&self.incoming);
            loop {
                let mut messages = incoming.messages.iter();
                if let Some(at) = messages.position(|(of, _)| (of ^ tag) & mask == 0) {
                    return Ok(incoming.messages.remove(at).expect("it is there"));
                }
                incoming.read(&self.stream)?;
            }
        })
        .await
    }
}

impl Incoming {
    /// Reads what is there of one message.
    fn read(&mut self, mut stream: &TcpStream) -> io::Result<()> {
        let Some(body) = &mut self.body else {
            self.came += some(stream.read(&mut self.header[self.came..])?)?;
            if self.came == HEADER {
                let len = u64::from_le_bytes(*self.header.last_chunk().expect("it is longer"));
                if len > LONGEST {
                    return Err(io::Error::other(format!("it has sent {len} bytes at a time")));
                }
                (self.body, self.came) = (Some(vec![0; len as usize]), 0);
                self.finish();
            }
            return Ok(());
        };
        self.came += some(stream.read(&mut body[self.came..])?)?;
        self.finish();
        Ok(())
    }

    /// Puts a message to the others if all of it has come.
    fn finish(&mut self) {
        if self.body.as_ref().is_some_and(|body| body.len() == self.came) {
            let tag = u64::from_le_bytes(*self.header.first_chunk().expect("it is longer"));
            self.messages.extend(self.body.take().map(|body| (tag, Bytes::from(body))));
            self.came = 0;
        }
    }
}

/// Takes the end of a stream for an error.
fn some(read: usize) -> io::Result<usize> {
    match read {
        0 => Err(ErrorKind::UnexpectedEof.into()),
        some => Ok(some),
    }
}
