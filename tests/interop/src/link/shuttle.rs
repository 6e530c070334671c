//! The thread that carries frames.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufWriter, ErrorKind, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Instant, SystemTime};

use doorbell_core::pcapng::{Direction, Writer};

use crate::tools::at;
use crate::{Error, sys};

use super::counters::Counters;
use super::faults::Faults;
use super::harm::Harm;
use super::stall::{Sender, Stall};
use super::way::Way;

/// No frame is longer.
const LONGEST: usize = 1 << 16;

/// How many frames wait for the guest at most.
const ROOM: usize = 4096;

/// How many frames are carried one way before the other has its turn.
const BATCH: usize = 64;

/// What is shared with whoever holds the link.
#[derive(Debug)]
pub struct State {
    lanes: [Lane; 2],
    pub recording: Option<Recording>,
    /// What is known of the guest's own requests.
    pub sender: Sender,
}

impl Default for State {
    fn default() -> Self {
        Self { lanes: Way::ALL.map(Lane::new), recording: None, sender: Sender::default() }
    }
}

impl State {
    pub fn lane(&mut self, way: Way) -> &mut Lane {
        &mut self.lanes[way as usize]
    }

    /// A frame has come from its sender.
    fn arrive(&mut self, way: Way, frame: Vec<u8>) {
        if let Some(recording) = &mut self.recording {
            recording.write(way, &frame);
        }
        let harmed = self.harmed();
        self.sender.see(way, &frame, Instant::now(), harmed);
        self.lane(way).arrive(frame);
    }

    /// The message that the guest's kernel has stopped sending, if there are all signs of that.
    pub fn stall(&self) -> Option<Stall> {
        self.sender.stall(self.harmed())
    }

    /// How many frames have come to harm so far, either way.
    fn harmed(&self) -> u64 {
        self.lanes.iter().map(|lane| lane.counters.harmed()).sum()
    }
}

/// A direction.
#[derive(Debug)]
pub struct Lane {
    pub counters: Counters,
    harm: Harm,
    /// What is to be sent.
    out: VecDeque<Vec<u8>>,
}

impl Lane {
    fn new(way: Way) -> Self {
        let harm = Harm::new(&Faults::NONE, 0, way as u32);
        Self { counters: Counters::default(), harm, out: VecDeque::new() }
    }

    /// Other faults from now on.
    pub fn renew(&mut self, harm: Harm) {
        self.harm.release_all(&mut self.out);
        self.harm = harm;
    }

    fn arrive(&mut self, frame: Vec<u8>) {
        self.counters.frames += 1;
        if self.out.len() < ROOM {
            self.harm.pass(frame, Instant::now(), &mut self.out, &mut self.counters);
        } else {
            self.counters.dropped += 1;
        }
    }

    /// Sends what is to be sent, until the receiver takes no more for now.
    fn send(&mut self, mut send: impl FnMut(&[u8]) -> io::Result<usize>) {
        self.harm.release(Instant::now(), &mut self.out);
        while let Some(frame) = self.out.front() {
            match send(frame) {
                Err(why) if why.kind() == ErrorKind::WouldBlock => return,
                Err(why) if why.kind() == ErrorKind::Interrupted => continue,
                // An interface that is down, or without room, or a guest that is gone.
                Err(_) => self.counters.dropped += 1,
                Ok(_) => {}
            }
            self.out.pop_front();
        }
    }
}

/// A capture file that is being written.
#[derive(Debug)]
pub struct Recording {
    writer: Writer<BufWriter<File>>,
    path: PathBuf,
    count: u64,
    failed: Option<io::Error>,
}

impl Recording {
    pub const fn new(writer: Writer<BufWriter<File>>, path: PathBuf) -> Self {
        Self { writer, path, count: 0, failed: None }
    }

    fn write(&mut self, way: Way, frame: &[u8]) {
        let direction = match way {
            Way::ToGuest => Direction::Outbound,
            Way::FromGuest => Direction::Inbound,
        };
        let time = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let time = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        match self.writer.write(time, direction, frame) {
            Ok(()) => self.count += 1,
            Err(why) => self.failed = Some(why),
        }
    }

    /// Ends the file. How many frames are in it.
    pub fn finish(mut self) -> Result<u64, Error> {
        let written = self.failed.map_or_else(|| self.writer.flush(), Err);
        written.map_err(at("writing the capture", &self.path)).map(|()| self.count)
    }
}

/// What carries frames.
pub struct Shuttle {
    interface: OwnedFd,
    guest: UnixDatagram,
    stop: UnixStream,
    state: Arc<Mutex<State>>,
}

impl Shuttle {
    pub const fn new(
        interface: OwnedFd,
        guest: UnixDatagram,
        stop: UnixStream,
        state: Arc<Mutex<State>>,
    ) -> Self {
        Self { interface, guest, stop, state }
    }

    /// Carries frames until the other end of `stop` is closed.
    pub fn run(self) {
        let mut interface = File::from(self.interface.try_clone().expect("a descriptor is left"));
        let mut buffer = vec![0; LONGEST];
        loop {
            take(BATCH, &self.state, Way::ToGuest, &mut buffer, |into| interface.read(into));
            take(BATCH, &self.state, Way::FromGuest, &mut buffer, |into| self.guest.recv(into));
            let (waits, next) = {
                let mut state = self.state.lock().expect("nothing panics with it");
                state.lane(Way::FromGuest).send(|frame| interface.write(frame));
                state.lane(Way::ToGuest).send(|frame| self.guest.send(frame));
                let overlooked = sys::overlooked(&self.interface).unwrap_or_default();
                state.lane(Way::ToGuest).counters.dropped += overlooked;
                let next = state.lanes.iter().filter_map(|lane| lane.harm.next()).min();
                (Way::ALL.map(|way| !state.lane(way).out.is_empty()), next)
            };
            let descriptors = [
                (self.stop.as_fd(), false),
                (self.interface.as_fd(), waits[Way::FromGuest as usize]),
                (self.guest.as_fd(), waits[Way::ToGuest as usize]),
            ];
            let at_most = next.map(|next| next.saturating_duration_since(Instant::now()));
            let [stopped, ..] = sys::wait(descriptors, at_most).expect("descriptors can be polled");
            if stopped {
                return;
            }
        }
    }
}

/// Takes what has come, up to so many frames.
fn take(
    count: usize,
    state: &Mutex<State>,
    way: Way,
    buffer: &mut [u8],
    mut receive: impl FnMut(&mut [u8]) -> io::Result<usize>,
) {
    for _ in 0..count {
        // Nothing there, or an interface that is down: it will be polled again.
        let Ok(len) = receive(buffer) else { return };
        let frame = buffer[..len].to_vec();
        state.lock().expect("nothing panics with it").arrive(way, frame);
    }
}
