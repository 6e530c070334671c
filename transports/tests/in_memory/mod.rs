use std::io;
use std::iter::once;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixDatagram;

use doorbell_core::encap::{Full, Opener, Outer, Path, PathId, Run};
use doorbell_core::nic::{Inbox, Outbox, Way, receive_frame};
use doorbell_core::payload::Payload;
use doorbell_core::time::Time;
use doorbell_core::wire::{Headers, IpId, Mac, PathMtu};
use doorbell_transports::{
    Address, Burst, Capabilities, Clock, Device, EpollTimer, ReachError, Statistics,
};

/// One end of a cable within a process: a pair of sockets, on which a datagram is a frame.
pub struct InMemory {
    socket: UnixDatagram,
    timer: EpollTimer,
    clock: Clock,
    address: Address,
    capabilities: Capabilities,
    statistics: Statistics,
    opener: Opener,
    burst: Burst,
    leaving: Box<[u8]>,
    arriving: Box<[u8]>,
}

/// Room for the largest packet and everything around it.
const FRAME: usize = PathMtu::Mtu4096.bytes() + Headers::MAX_LEN + Outer::MAX_LEN + 8;

impl InMemory {
    /// Both ends of a cable.
    pub fn pair() -> io::Result<(Self, Self)> {
        let (one, other) = UnixDatagram::pair()?;
        Ok((Self::new(one, 0)?, Self::new(other, 1)?))
    }

    fn new(socket: UnixDatagram, station: u32) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        let capabilities = Capabilities {
            name: "in-memory",
            mtu: PathMtu::Mtu4096,
            encrypted_mtu: PathMtu::Mtu4096,
            run: 1,
            segmentation: false,
            checksum: false,
            lossless: false,
            mapping: false,
            simulated: false,
            labels: false,
            memory: 2 * FRAME,
        };
        Ok(Self {
            socket,
            timer: EpollTimer::new()?,
            clock: Clock::new(),
            address: Address::Fabric(station),
            capabilities,
            statistics: Statistics::default(),
            opener: Opener::default(),
            burst: Burst::new(),
            leaving: vec![0; FRAME].into(),
            arriving: vec![0; FRAME].into(),
        })
    }
}

impl Outbox for InMemory {
    fn push(&mut self, path: &Path, headers: Headers, payload: impl Payload) -> Result<u64, Full> {
        // A frame of one packet, which a run may have, too. It leaves at once.
        let mut run = Run::begin(path, &mut self.leaving, IpId(0), 1);
        run.push(path, &mut self.leaving, headers, payload)?;
        let frame = run.seal(&mut self.leaving);
        match self.socket.send(&self.leaving[..frame.len]) {
            Ok(sent) => {
                self.statistics.frames_sent += 1;
                self.statistics.packets_sent += 1;
                self.statistics.bytes_sent += sent as u64;
            }
            // The other end is full, or gone. The frame is lost, as any may be: the NIC copes.
            Err(_) => self.statistics.refused += 1,
        }
        Ok(0) // only lossless devices have tickets
    }

    fn flush(&mut self) {}

    fn delivered(&mut self, _: PathId) -> u64 {
        0
    }
}

impl Device for InMemory {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn receive(&mut self, inbox: &mut impl Inbox) -> usize {
        let Self { socket, opener, burst, arriving, statistics, .. } = self;
        burst.take(|| {
            let Ok(len) = socket.recv(arriving) else { return false };
            statistics.frames_received += 1;
            statistics.bytes_received += len as u64;
            receive_frame(inbox, opener, &arriving[..len], None);
            true
        })
    }

    fn now(&self) -> Time {
        self.clock.now()
    }

    fn address(&self) -> &Address {
        &self.address
    }

    fn reach(&mut self, peer: &Address) -> Result<Option<Way>, ReachError> {
        let (&Address::Fabric(here), &Address::Fabric(there @ (0 | 1))) = (&self.address, peer)
        else {
            let (address, takes) = (peer.clone(), "fabric:0 or fabric:1");
            return Err(ReachError::Kind { address, device: "in-memory", takes });
        };
        let [here, there] = [here, there].map(|it| Mac([2, 0, 0x5E, 0, 0, it as u8]));
        Ok(Some(Way::Network(Outer::v1((here, there)))))
    }

    fn readiness(&self) -> BorrowedFd<'_> {
        self.timer.readiness()
    }

    fn arm(&mut self, until: Option<Time>) -> io::Result<()> {
        self.statistics.sleeps += 1;
        let after = until.map(|until| until.since(self.clock.now()));
        self.timer.arm(once(self.socket.as_fd()), after)
    }

    fn disarm(&mut self) {
        self.timer.disarm(once(self.socket.as_fd()));
    }

    fn statistics(&mut self) -> Statistics {
        self.statistics
    }
}
