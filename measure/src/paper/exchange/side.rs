//! One side of an exchange: messages are posted, and looked at later.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use bytes::Bytes;
use doorbell_messages::frames::{Endpoint, Match, Peer as Far, Receiving, Sending};
use doorbell_verbs::{Config, Progress};
use serde_json::{Value, json};

use super::args::{Args, Protocol, Runs};
use super::pair::Where;
use crate::perf::ends::peer::Peer;

/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// A side of an exchange, which posts messages of one length and looks at them later.
pub struct Side {
    carrier: Carrier,
    body: Bytes,
    leads: bool,
}

enum Carrier {
    Frames(Box<Frames>),
    Tcp(Tcp),
}

struct Frames {
    endpoint: Endpoint,
    far: Far,
    /// Whether the program has to take turns with the NIC and the endpoint.
    is_polled: bool,
    receiving: VecDeque<Receiving>,
    sending: VecDeque<Sending>,
}

/// Messages as bytes of a stream, whose lengths both sides know.
struct Tcp {
    stream: TcpStream,
    /// The unsent rest of each message that is being sent.
    sending: VecDeque<Bytes>,
    /// Receives that were posted: the bytes that have come of each.
    receiving: VecDeque<(Vec<u8>, usize)>,
}

impl Side {
    pub async fn open(args: &Args, peer: &mut Peer, place: &Where) -> anyhow::Result<Self> {
        let carrier = match args.protocol {
            Protocol::Tcp => Carrier::Tcp(Tcp::open(peer, place)?),
            _ => Carrier::Frames(Box::new(Frames::open(args, peer, place).await?)),
        };
        Ok(Self { carrier, body: Bytes::new(), leads: place.leads })
    }

    /// Returns whether this side leads the exchange and measures.
    pub fn leads(&self) -> bool {
        self.leads
    }

    /// Sets the length of the messages from here on.
    pub fn prepare(&mut self, size: usize) {
        self.body = (0..size).map(|at| at as u8).collect();
    }

    pub fn size(&self) -> usize {
        self.body.len()
    }

    /// Posts the send of a message.
    #[inline]
    pub fn send(&mut self) -> anyhow::Result<()> {
        match &mut self.carrier {
            Carrier::Frames(frames) => {
                frames.sending.push_back(frames.far.send(1, self.body.clone()));
                Ok(())
            }
            Carrier::Tcp(tcp) => {
                tcp.sending.push_back(self.body.clone());
                tcp.write()
            }
        }
    }

    /// Posts the receive of a message.
    #[inline]
    pub fn receive(&mut self) {
        let room = self.body.len();
        match &mut self.carrier {
            Carrier::Frames(frames) => {
                frames
                    .receiving
                    .push_back(frames.endpoint.receive_at_most(room, Match::exactly(1)));
            }
            Carrier::Tcp(tcp) => tcp.receiving.push_back((vec![0; room], 0)),
        }
    }

    /// Makes progress, where that is the program's part.
    pub fn turn(&mut self) -> anyhow::Result<()> {
        match &mut self.carrier {
            Carrier::Frames(frames) if frames.is_polled => {
                frames.endpoint.poll();
                if !self.leads {
                    std::thread::yield_now();
                }
                Ok(())
            }
            Carrier::Frames(_) => {
                std::thread::yield_now();
                Ok(())
            }
            Carrier::Tcp(tcp) => {
                tcp.write()?;
                tcp.read()
            }
        }
    }

    /// Makes progress between pieces of computation: as little as the program has to do.
    #[inline]
    pub fn look(&mut self) -> anyhow::Result<()> {
        match &mut self.carrier {
            Carrier::Frames(frames) if frames.is_polled => {
                frames.endpoint.poll();
                Ok(())
            }
            Carrier::Frames(_) => Ok(()),
            Carrier::Tcp(tcp) => tcp.write().and_then(|()| tcp.read()),
        }
    }

    /// Takes receives back that nothing has met.
    pub fn cancel(&mut self) {
        match &mut self.carrier {
            Carrier::Frames(frames) => frames.receiving.clear(),
            Carrier::Tcp(tcp) => tcp.receiving.clear(),
        }
    }

    /// Returns how many sends are under way, after a look at them.
    #[inline]
    pub fn sends(&mut self) -> anyhow::Result<usize> {
        match &mut self.carrier {
            Carrier::Frames(frames) => {
                while let Some(sending) = frames.sending.front_mut() {
                    let Some(outcome) = sending.test() else { break };
                    outcome?;
                    frames.sending.pop_front();
                }
                Ok(frames.sending.len())
            }
            Carrier::Tcp(tcp) => Ok(tcp.sending.len()),
        }
    }

    /// Returns how many receives are under way, after a look at them.
    #[inline]
    pub fn receives(&mut self) -> anyhow::Result<usize> {
        let size = self.body.len();
        match &mut self.carrier {
            Carrier::Frames(frames) => {
                while let Some(receiving) = frames.receiving.front_mut() {
                    let Some(outcome) = receiving.test() else { break };
                    let message = outcome?;
                    if message.body.len() != size || message.body.last() != self.body.last() {
                        bail!("a message of {size} bytes is not what it should be");
                    }
                    frames.receiving.pop_front();
                }
                Ok(frames.receiving.len())
            }
            Carrier::Tcp(tcp) => Ok(tcp.receiving.len()),
        }
    }

    /// Waits until at most so many sends and receives are under way.
    pub fn wait(&mut self, sends: usize, receives: usize) -> anyhow::Result<()> {
        let (mut began, mut turns) = (None, 0_u32);
        while self.receives()? > receives || self.sends()? > sends {
            self.turn()?;
            turns = turns.wrapping_add(1);
            if turns.is_multiple_of(1024) {
                let began = *began.get_or_insert_with(Instant::now);
                if began.elapsed() > PATIENCE {
                    bail!("the other end has not answered for {PATIENCE:?}");
                }
            }
        }
        Ok(())
    }

    /// Returns what the endpoint has counted.
    pub fn counted(&self) -> Value {
        match &self.carrier {
            Carrier::Frames(frames) => {
                let counted = frames.endpoint.statistics();
                json!({
                    "frames_sent": counted.frames_sent,
                    "resent": counted.resent,
                    "dropped": counted.dropped,
                    "acknowledgements": counted.acknowledgements,
                    "cleared": counted.cleared,
                    "placed": counted.placed,
                })
            }
            Carrier::Tcp(_) => Value::Null,
        }
    }
}

impl Frames {
    async fn open(args: &Args, peer: &mut Peer, place: &Where) -> anyhow::Result<Self> {
        // A thread that shares its processor with the other program must not spin.
        let spin = Duration::from_micros(if place.is_alone { 50 } else { 0 });
        let runs = if place.leads { args.runs } else { Runs::Program };
        let mut config = Config::default();
        if runs != Runs::Program {
            config.spin = spin;
        }
        if runs == Runs::Nic {
            config.progress = Progress::Dedicated { core: Some(place.thread) };
        }
        let mut builder = Endpoint::builder().policy(args.policy()).nic(config);
        if let Some(bytes) = args.frame {
            builder = builder.frame(bytes);
        }
        if runs == Runs::Thread {
            builder = builder.apart(Some(place.thread));
        }
        let endpoint = builder.open(&place.device).await?;
        let theirs = peer.swap(&json!(endpoint.name().to_string()))?;
        let theirs = theirs.as_str().context("the other end's name")?.to_owned();
        let is_polled = runs != Runs::Thread;
        let turn = || {
            if is_polled {
                endpoint.poll();
            }
        };
        let far = meanwhile(endpoint.connect(theirs), turn).await?;
        let is_ready = meanwhile(far.ready(), turn).await;
        if is_ready != (args.step > 0) {
            bail!("the connection for RDMA writes was not made");
        }
        // The other end's connection for RDMA writes is taken by a task of this end's endpoint.
        peer.swap_beside_tasks(&json!("ready"), turn).await?;
        let (receiving, sending) = (VecDeque::new(), VecDeque::new());
        Ok(Self { endpoint, far, is_polled, receiving, sending })
    }
}

/// Awaits a future, and does something between its polls.
async fn meanwhile<F: Future>(future: F, mut does: impl FnMut()) -> F::Output {
    let mut future = std::pin::pin!(future);
    loop {
        tokio::select! {
            biased;
            output = &mut future => return output,
            () = tokio::task::yield_now() => does(),
        }
    }
}

impl Tcp {
    fn open(peer: &mut Peer, place: &Where) -> anyhow::Result<Self> {
        let stream = if place.leads {
            let there = peer.hear()?;
            let there = there.as_str().context("the other end's address")?.to_owned();
            TcpStream::connect(&there).with_context(|| format!("connecting to {there}"))?
        } else {
            let listener = TcpListener::bind((place.here, 0)).context("listening")?;
            peer.tell(&json!(listener.local_addr()?.to_string()))?;
            listener.accept().context("waiting for the connection")?.0
        };
        let set = stream.set_nodelay(true).and_then(|()| stream.set_nonblocking(true));
        set.context("TCP_NODELAY")?;
        Ok(Self { stream, sending: VecDeque::new(), receiving: VecDeque::new() })
    }

    fn write(&mut self) -> anyhow::Result<()> {
        while let Some(rest) = self.sending.front_mut() {
            match self.stream.write(rest) {
                Ok(written) => drop(rest.split_to(written)),
                Err(why) if why.kind() == ErrorKind::WouldBlock => break,
                Err(why) => return Err(why).context("sending by TCP"),
            }
            if rest.is_empty() {
                self.sending.pop_front();
            }
        }
        Ok(())
    }

    fn read(&mut self) -> anyhow::Result<()> {
        while let Some((bytes, at)) = self.receiving.front_mut() {
            match self.stream.read(&mut bytes[*at..]) {
                Ok(0) if !bytes.is_empty() => bail!("the other end has closed the stream"),
                Ok(read) => *at += read,
                Err(why) if why.kind() == ErrorKind::WouldBlock => break,
                Err(why) => return Err(why).context("receiving by TCP"),
            }
            if *at == bytes.len() {
                self.receiving.pop_front();
            }
        }
        Ok(())
    }
}
