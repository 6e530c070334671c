//! A message there and one back over a socket, again and again.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpStream, UdpSocket};
use std::time::Instant;

use anyhow::{Context, bail};
use serde_json::json;

use crate::perf::Plan;
use crate::perf::ends::peer::Peer;
use crate::perf::figures::latencies::Latencies;
use crate::perf::figures::{Figures, Quantity};
use crate::perf::plan::meter::Meter;
use crate::perf::shared::patience::Patience;
use crate::perf::shared::pattern::Pattern;

/// A socket that does not block.
pub trait Socket {
    fn send(&self, bytes: &[u8]) -> io::Result<usize>;
    fn receive(&self, bytes: &mut [u8]) -> io::Result<usize>;
}

impl Socket for TcpStream {
    fn send(&self, bytes: &[u8]) -> io::Result<usize> {
        (&*self).write(bytes)
    }

    fn receive(&self, bytes: &mut [u8]) -> io::Result<usize> {
        match (&*self).read(bytes) {
            Ok(0) => Err(ErrorKind::UnexpectedEof.into()),
            other => other,
        }
    }
}

impl Socket for UdpSocket {
    fn send(&self, bytes: &[u8]) -> io::Result<usize> {
        Self::send(self, bytes)
    }

    fn receive(&self, bytes: &mut [u8]) -> io::Result<usize> {
        self.recv(bytes)
    }
}

/// Does something until it does not have to wait, and says how much it did.
#[inline]
pub fn insist(what: &str, mut does: impl FnMut() -> io::Result<usize>) -> anyhow::Result<usize> {
    let mut patience = Patience::default();
    loop {
        match does() {
            Err(why) if why.kind() == ErrorKind::WouldBlock => {}
            done => return done.context("the other end has gone, or the network has"),
        }
        patience.spend(what)?;
    }
}

pub fn run(socket: &impl Socket, plan: &Plan, peer: &mut Peer) -> anyhow::Result<Option<Figures>> {
    let mut side = Side {
        socket,
        pattern: Pattern::new(plan.size),
        // One byte more, or a longer datagram would pass.
        arrived: vec![0; plan.size + 1],
    };
    peer.swap(&json!("begin"))?;
    let mut times = side.play(plan, peer.leads())?;
    Ok(peer.leads().then(|| Figures {
        device: None,
        iters: times.len(),
        found: Quantity::Latency(times.summary(2)),
    }))
}

struct Side<'s, S> {
    socket: &'s S,
    pattern: Pattern,
    arrived: Vec<u8>,
}

impl<S: Socket> Side<'_, S> {
    fn play(&mut self, plan: &Plan, leads: bool) -> anyhow::Result<Latencies> {
        let meter = if leads { plan.meter() } else { Meter::hidden() };
        let mut times = Latencies::new(plan.amount, meter);
        let began = Instant::now();
        let (mut round, mut last) = (0, false);
        while !last {
            round += 1;
            let start = Instant::now();
            if leads {
                last = plan.amount.is_over(round, || start - began);
                self.send(round, last)?;
                self.receive(round)?;
                times.record(start.elapsed());
            } else {
                last = self.receive(round)?;
                self.send(round, last)?;
            }
        }
        Ok(times)
    }

    /// Sends the message of a number; the last one is turned over, each bit of it.
    fn send(&mut self, number: u64, last: bool) -> anyhow::Result<()> {
        let message = self.pattern.of(number, self.arrived.len() - 1);
        let turned: Vec<u8>;
        let message = if last {
            turned = message.iter().map(|byte| !byte).collect();
            &turned
        } else {
            message
        };
        let mut sent = 0;
        while sent < message.len() {
            sent += insist("room for a message", || self.socket.send(&message[sent..]))?;
        }
        Ok(())
    }

    /// Receives the message of a number, and says whether it was the last.
    fn receive(&mut self, number: u64) -> anyhow::Result<bool> {
        let (size, mut got) = (self.arrived.len() - 1, 0);
        while got < size {
            let room = &mut self.arrived[got..];
            got += insist("a message", || self.socket.receive(room))?;
        }
        let expected = self.pattern.of(number, size);
        if self.arrived[..got] == *expected {
            return Ok(false);
        }
        if got == size && self.arrived.iter().zip(expected).all(|(a, b)| *a == !b) {
            return Ok(true);
        }
        bail!("message {number} is not what it should be");
    }
}
