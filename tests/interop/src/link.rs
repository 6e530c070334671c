//! The cable between a network namespace and a guest.
//!
//! Of a veth pair the near end is what Doorbell is tested on. What arrives at the far end goes to
//! the guest, and what the guest sends comes out there: a thread carries it. It can keep a record
//! of all frames, and do harm to those of RoCE.

mod counters;
mod faults;
mod harm;
mod roce;
mod shuttle;
mod stall;
mod way;

use std::fs::File;
use std::io::BufWriter;
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;

use doorbell_core::pcapng::Writer;
use doorbell_kit::lab::{Cable, Lab, LabError};

use crate::tools::at;
use crate::{Error, sys};

pub use counters::Counters;
pub use faults::Faults;
use harm::Harm;
use shuttle::{Recording, Shuttle, State};
use stall::Sender;
pub use stall::Stall;
pub use way::Way;

/// What the receiving socket may hold, where that is not limited to less.
const QUEUE: i32 = 8 << 20;

/// What the veth pair is told to leave alone, so that frames are as they would be on a wire.
const OFFLOADS: [&str; 5] = [
    "tx-checksum-ip-generic",
    "tx-udp-segmentation",
    "tx-tcp-segmentation",
    "generic-segmentation-offload",
    "generic-receive-offload",
];

/// A link that is plugged in. It is pulled when this is dropped.
#[derive(Debug)]
pub struct Link {
    state: Arc<Mutex<State>>,
    /// The end that a guest gets.
    guest: UnixDatagram,
    /// The thread ends when it is closed.
    stop: Option<UnixStream>,
    thread: Option<JoinHandle<()>>,
}

impl Link {
    /// Plugs one in at the far end of a cable, which loses its addresses: they are the guest's to
    /// have. On both ends it switches offloads off, so that every frame is whole, with its sums.
    ///
    /// # Errors
    /// When the interface can't be made so, or this process may not receive all of its frames.
    pub fn plug(lab: &Lab, cable: &Cable) -> Result<Self, Error> {
        let far = &cable.far.interface;
        lab.far.ip(&format!("addr flush dev {far}"))?;
        for feature in OFFLOADS {
            lab.near.offload(&cable.near.interface, feature, false).or_else(unknown)?;
            lab.far.offload(far, feature, false).or_else(unknown)?;
        }
        let failed = |what| move |source| Error::System { what, source };
        let socket = lab.far.within(|| sys::packet_socket(far, QUEUE));
        let socket = socket.map_err(failed("receiving all frames of an interface"))?;
        let pairs = UnixDatagram::pair().and_then(|pair| Ok((pair, UnixStream::pair()?)));
        let ((own, guest), (stop, stopped)) = pairs.map_err(failed("making sockets"))?;
        own.set_nonblocking(true).map_err(failed("making sockets"))?;
        let state = Arc::new(Mutex::new(State::default()));
        let shuttle = Shuttle::new(socket, own, stopped, Arc::clone(&state));
        let thread = std::thread::Builder::new().name("link".to_owned());
        let thread = thread.spawn(|| shuttle.run()).map_err(failed("starting a thread"))?;
        Ok(Self { state, guest, stop: Some(stop), thread: Some(thread) })
    }

    /// The end that a guest gets.
    pub(crate) fn guest(&self) -> &UnixDatagram {
        &self.guest
    }

    /// From now on, these faults strike frames of RoCE in both directions. What was held back by
    /// others before is let go.
    ///
    /// # Panics
    /// When something is no probability.
    pub fn faults(&self, faults: Faults, seed: u64) {
        for way in Way::ALL {
            self.faults_on(way, faults, seed);
        }
    }

    /// The same in one direction.
    ///
    /// # Panics
    /// When something is no probability.
    pub fn faults_on(&self, way: Way, faults: Faults, seed: u64) {
        let harm = Harm::new(&faults, seed, way as u32);
        self.state().lane(way).renew(harm);
    }

    /// What has happened on one direction so far.
    pub fn counters(&self, way: Way) -> Counters {
        self.state().lane(way).counters
    }

    /// The message that the guest's kernel has stopped sending in its middle, without any cause on
    /// the wire; nothing unless every sign of that was seen. A peer sees such a [`Stall`] as a
    /// message that never ends, and can do nothing about it.
    pub fn stall(&self) -> Option<Stall> {
        self.state().stall()
    }

    /// Forgets the requests that the guest has sent: a [`stall`](Self::stall) of one of those is
    /// not told of any more.
    pub fn forget_requests(&self) {
        self.state().sender = Sender::default();
    }

    /// From now on, writes every frame into a capture file, as it came from its sender: before any
    /// fault struck. Frames from the namespace are outbound, those from the guest inbound.
    ///
    /// # Errors
    /// When the file can't be made, or the one before not be finished.
    pub fn record(&self, path: impl Into<PathBuf>) -> Result<(), Error> {
        self.stop_recording()?;
        let path = path.into();
        let failed = || at("making the capture", &path);
        let file = BufWriter::new(File::create(&path).map_err(failed())?);
        let writer = Writer::new(file, "link", "a namespace and a guest").map_err(failed())?;
        self.state().recording = Some(Recording::new(writer, path));
        Ok(())
    }

    /// Finishes the capture file; returns how many frames are in it. None if there was none.
    ///
    /// # Errors
    /// When something could not be written.
    pub fn stop_recording(&self) -> Result<u64, Error> {
        let recording = self.state().recording.take();
        recording.map_or(Ok(0), Recording::finish)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nothing panics with it")
    }
}

/// An offload that the system does not know it does not do.
fn unknown(why: LabError) -> Result<(), LabError> {
    match why {
        LabError::Failed { ref said, .. } if said.contains("bad command line") => Ok(()),
        why => Err(why),
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.stop = None;
        let ended = self.thread.take().map(JoinHandle::join);
        if ended.is_some_and(|ended| ended.is_err()) && !std::thread::panicking() {
            panic!("the link's thread has panicked: it says why above");
        }
        // A capture that can't be finished is missed by whoever looks for it.
        let _ = self.stop_recording();
    }
}
