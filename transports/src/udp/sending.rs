//! How packets are put into frames, and frames are handed to the system.

use std::io;
use std::net::SocketAddr;

use doorbell_core::encap::{Full, Path, Run, Sealed};
use doorbell_core::payload::Payload;
use doorbell_core::wire::{Headers, IpId};
use rustix::io::Errno;

use super::headers;
use super::state::{DeferredFrame, LISTENER, Target, Udp};
use super::traffic::Traffic;
use crate::sys::udp::EncodedAddress;

/// How many addresses are remembered to which the system sends no runs.
const MOST_UNCUT: usize = 64;

impl Udp {
    /// Encodes a packet behind those that are in the frame already.
    #[inline]
    pub(super) fn encode(
        &mut self,
        path: &Path,
        headers: Headers,
        payload: impl Payload,
    ) -> Result<(), Full> {
        if self.stuck {
            self.send();
        }
        loop {
            if self.stuck {
                return Err(Full);
            }
            if self.run.is_none() {
                self.run = self.begin(path, &headers)?;
            }
            let Some(run) = &mut self.run else {
                // The path leads nowhere from this address, and so the packet is lost.
                self.statistics.refused += 1;
                return Ok(());
            };
            match run.push(path, &mut self.frame, headers, payload) {
                Ok(()) => return Ok(()),
                // A packet that does not fit an empty frame fits no frame.
                Err(Full) if run.packets() == 0 => {
                    self.run = None;
                    return Err(Full);
                }
                Err(Full) => self.send(),
            }
        }
    }

    /// Begins a frame along a path, of which `headers` are those of the first packet. `None` if the
    /// path leads to no socket.
    #[inline]
    fn begin(&mut self, path: &Path, headers: &Headers) -> Result<Option<Run>, Full> {
        // The path is known by its headers: its number may have been another path's before.
        let Some(to) = headers::destination(path.outer(), self.own) else { return Ok(None) };
        if self.target.to != to {
            self.aim(to);
        }
        let own_socket = self.target.peer.map(|peer| &mut self.peers[peer]);
        let (id, most) = match own_socket.and_then(|peer| peer.sends(headers)) {
            Some(known) => known,
            None => (IpId(0), self.unconnected(to, headers)?),
        };
        self.class = path.outer().traffic_class();
        Ok(Some(Run::begin(path, &mut self.frame, id, most)))
    }

    /// Makes an address the target of the frames that follow.
    #[cold]
    pub(super) fn aim(&mut self, to: SocketAddr) {
        let peer = self.peers.iter().position(|peer| peer.address == to);
        let run = if self.uncut.contains(&to) { 1 } else { self.run_most };
        self.target = Target { to, encoded: EncodedAddress::of(to), peer, run };
    }

    /// Has the frame leave by the listener, and returns how many packets it may have there. There
    /// is no room while another frame waits at the listener.
    #[cold]
    fn unconnected(&mut self, to: SocketAddr, headers: &Headers) -> Result<u32, Full> {
        self.send_waiting();
        if self.waiting.is_some() {
            return Err(Full);
        }
        let is_new = self.target.peer.take().is_none();
        let traffic = Traffic::of(headers);
        let counts = is_new && self.connects && self.wanted.is_none();
        if counts && self.frequent.count(to, traffic) {
            self.wanted = Some((to, traffic));
        }
        Ok(self.target.run)
    }

    /// Hands the frame to the system, if there is a frame.
    #[inline]
    pub(super) fn send(&mut self) {
        let Some(run) = self.run.take() else { return };
        let sealed = run.seal(&mut self.frame);
        match self.hand_over(sealed) {
            Ok(()) => {
                self.stuck = false;
                self.count_sent(sealed);
                if let Some(peer) = self.target.peer {
                    self.peers[peer].sent(self.statistics.frames_sent);
                }
            }
            Err(why) => self.refused(run, sealed, &why),
        }
    }

    /// Counts a frame that was sent.
    #[inline]
    fn count_sent(&mut self, sealed: Sealed) {
        self.statistics.frames_sent += 1;
        self.statistics.packets_sent += u64::from(sealed.packets);
        self.statistics.bytes_sent += sealed.len as u64;
    }

    /// Hands a frame to the system, a second time if the first call fails for an earlier frame.
    #[inline]
    fn hand_over(&mut self, sealed: Sealed) -> io::Result<()> {
        match self.offer(sealed) {
            // The error is of an earlier frame, and the system has not looked at this one.
            Err(why) if is_notice(&why) => {
                self.read_reports(self.target.peer.map_or(LISTENER, |peer| peer + 1));
                self.offer(sealed)
            }
            result => result,
        }
    }

    /// Makes the system call that sends a frame.
    #[inline]
    fn offer(&mut self, sealed: Sealed) -> io::Result<()> {
        let datagrams = &self.frame[self.headers_len..sealed.len];
        let segment = sealed.segmentation.map(|segmentation| segmentation.segment);
        let (socket, class) = match self.target.peer.map(|peer| &mut self.peers[peer]) {
            Some(peer) => (&peer.socket, &mut peer.class),
            None => (&self.listener, &mut self.listeners_class),
        };
        if *class != self.class {
            socket.set_traffic_class(self.class);
            *class = self.class;
        }
        match (self.target.peer, segment) {
            (Some(_), None) => socket.send(datagrams),
            (Some(_), Some(_)) => socket.send_run(datagrams, segment, None),
            (None, _) => socket.send_run(datagrams, segment, Some(&self.target.encoded)),
        }
    }

    /// Keeps a frame that the system has no room for, and drops one that it refuses.
    #[cold]
    fn refused(&mut self, run: Run, sealed: Sealed, why: &io::Error) {
        if why.kind() == io::ErrorKind::WouldBlock {
            match self.target.peer {
                Some(_) => (self.stuck, self.run) = (true, Some(run)),
                None => self.put_aside(sealed),
            }
            if self.turns.asleep {
                // A turn before a sleep found no room. All sockets are watched, so this can't fail.
                let _ = self.wait_for_room();
            }
            return;
        }
        self.stuck = false;
        // The frame is lost, and the NIC copes with that.
        self.statistics.refused += 1;
        self.read_reports(self.target.peer.map_or(LISTENER, |peer| peer + 1));
        // The system refuses a run with these errors where nobody sums checksums, or a tunnel leads
        // away.
        let uncut = matches!(Errno::from_io_error(why), Some(Errno::IO | Errno::INVAL));
        let uncut = uncut && sealed.segmentation.is_some();
        match self.target.peer {
            Some(peer) => {
                self.peers[peer].failed(uncut);
                self.unsettled = true;
            }
            None if uncut => self.stop_sending_runs(),
            None => {}
        }
    }

    /// Sends a packet a frame to this target from here on.
    fn stop_sending_runs(&mut self) {
        if self.uncut.len() == MOST_UNCUT {
            self.uncut.remove(0);
        }
        self.uncut.push(self.target.to);
        self.target.run = 1;
    }

    /// Keeps a frame for which the listener has no room, while frames to other peers leave by those
    /// peers' sockets. What has filled the listener may be for hosts that do not answer.
    fn put_aside(&mut self, sealed: Sealed) {
        let (class, other) = (self.class, std::mem::take(&mut self.spare));
        let frame = std::mem::replace(&mut self.frame, other);
        self.waiting = Some(DeferredFrame { frame, sealed, class, to: self.target.encoded });
    }

    /// Sends the frame that was put aside, if there is one, and there is room by now.
    #[cold]
    pub(super) fn send_waiting(&mut self) {
        let Some(DeferredFrame { frame, sealed, class, to }) = self.waiting.take() else { return };
        let (segment, len) = (sealed.segmentation.map(|cut| cut.segment), sealed.len);
        let datagrams = &frame[self.headers_len..len];
        if self.listeners_class != class {
            self.listener.set_traffic_class(class);
            self.listeners_class = class;
        }
        let mut sent = self.listener.send_run(datagrams, segment, Some(&to));
        if sent.as_ref().is_err_and(is_notice) {
            self.read_reports(LISTENER);
            sent = self.listener.send_run(datagrams, segment, Some(&to));
        }
        match sent {
            Ok(()) => self.count_sent(sealed),
            Err(why) if why.kind() == io::ErrorKind::WouldBlock => {
                self.waiting = Some(DeferredFrame { frame, sealed, class, to });
                return;
            }
            Err(_) => self.statistics.refused += 1,
        }
        self.spare = frame;
    }
}

/// Returns whether an error may be about an earlier frame, perhaps to another peer. The kernel
/// reports an ICMP message by failing the next call, whatever that call is for. The kernel finds
/// none of these errors after it has numbered a frame, so the same frame may be sent again.
#[cold]
fn is_notice(why: &io::Error) -> bool {
    const NOTICES: [Errno; 10] = [
        Errno::CONNREFUSED,
        Errno::HOSTUNREACH,
        Errno::NETUNREACH,
        Errno::HOSTDOWN,
        Errno::NONET,
        Errno::NOPROTOOPT,
        Errno::OPNOTSUPP,
        Errno::PROTO,
        Errno::ACCESS,
        Errno::MSGSIZE,
    ];
    Errno::from_io_error(why).is_some_and(|why| NOTICES.contains(&why))
}
