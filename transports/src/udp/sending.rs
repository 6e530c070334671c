//! How frames leave.

use std::io;
use std::net::SocketAddr;

use doorbell_core::encap::{Full, Path, Run, Sealed};
use doorbell_core::payload::Payload;
use doorbell_core::wire::{Headers, IpId};

use super::often::Traffic;
use super::{LISTENER, Target, Udp, headers};
use crate::sys::udp::Name;

/// How many addresses are remembered to which runs are not sent.
const MOST_UNCUT: usize = 64;

/// A frame for which the socket that all share has no room at the moment.
pub(super) struct Waiting {
    frame: Box<[u8]>,
    sealed: Sealed,
    to: Name,
}

impl Udp {
    /// Encodes a packet behind those that wait.
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
                // It leads nowhere from here, and so it is lost.
                self.statistics.refused += 1;
                return Ok(());
            };
            match run.push(path, &mut self.frame, headers, payload) {
                Ok(()) => return Ok(()),
                // What does not fit an empty frame fits none.
                Err(Full) if run.packets() == 0 => {
                    self.run = None;
                    return Err(Full);
                }
                Err(Full) => self.send(),
            }
        }
    }

    /// Begins a frame along a path, if that leads to a socket, with a packet of these headers.
    #[inline]
    fn begin(&mut self, path: &Path, headers: &Headers) -> Result<Option<Run>, Full> {
        // By the path's headers: its number may have been another's before.
        let Some(to) = headers::destination(path.outer(), self.own) else { return Ok(None) };
        if self.target.to != to {
            self.aim(to);
        }
        let own_socket = self.target.peer.map(|peer| &mut self.peers[peer]);
        let (id, most) = match own_socket.and_then(|peer| peer.sends(headers)) {
            Some(known) => known,
            None => (IpId(0), self.unconnected(to, headers)?),
        };
        Ok(Some(Run::begin(path, &mut self.frame, id, most)))
    }

    #[cold]
    pub(super) fn aim(&mut self, to: SocketAddr) {
        let peer = self.peers.iter().position(|peer| peer.address == to);
        let run = if self.uncut.contains(&to) { 1 } else { self.run_most };
        self.target = Target { to, name: Name::of(to), peer, run };
    }

    /// Has the frame leave by the socket that all share; how many packets it may have there. Not
    /// while another waits for room there.
    #[cold]
    fn unconnected(&mut self, to: SocketAddr, headers: &Headers) -> Result<u32, Full> {
        self.send_waiting();
        if self.waiting.is_some() {
            return Err(Full);
        }
        let is_new = self.target.peer.take().is_none();
        let traffic = Traffic::of(headers);
        let counts = is_new && self.connects && self.wanted.is_none();
        if counts && self.often.count(to, traffic) {
            self.wanted = Some((to, traffic));
        }
        Ok(self.target.run)
    }

    /// Hands the frame to the system, if there is one.
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

    #[inline]
    fn count_sent(&mut self, sealed: Sealed) {
        self.statistics.frames_sent += 1;
        self.statistics.packets_sent += u64::from(sealed.packets);
        self.statistics.bytes_sent += sealed.len as u64;
    }

    #[inline]
    fn hand_over(&mut self, sealed: Sealed) -> io::Result<()> {
        match self.offer(sealed) {
            // Notice of what became of an earlier one: this one was not looked at.
            Err(why) if is_notice(&why) => {
                self.heed(self.target.peer.map_or(LISTENER, |peer| peer + 1));
                self.offer(sealed)
            }
            result => result,
        }
    }

    #[inline]
    fn offer(&self, sealed: Sealed) -> io::Result<()> {
        let datagrams = &self.frame[self.headers_len..sealed.len];
        let segment = sealed.segmentation.map(|segmentation| segmentation.segment);
        match (self.target.peer, segment) {
            (Some(peer), None) => self.peers[peer].socket.send(datagrams),
            (Some(peer), Some(_)) => self.peers[peer].socket.send_run(datagrams, segment, None),
            (None, _) => self.listener.send_run(datagrams, segment, Some(&self.target.name)),
        }
    }

    /// What becomes of a frame that the system did not take.
    #[cold]
    fn refused(&mut self, run: Run, sealed: Sealed, why: &io::Error) {
        if why.kind() == io::ErrorKind::WouldBlock {
            match self.target.peer {
                Some(_) => (self.stuck, self.run) = (true, Some(run)),
                None => self.put_aside(sealed),
            }
            if self.turns.asleep {
                // Of turns that are taken before sleeping. What is watched can be watched for this.
                let _ = self.wait_for_room();
            }
            return;
        }
        self.stuck = false;
        // It is lost, and the NIC copes.
        self.statistics.refused += 1;
        self.heed(self.target.peer.map_or(LISTENER, |peer| peer + 1));
        // What a run is answered where nobody sums checksums, or a tunnel leads away.
        let uncut = matches!(why.raw_os_error(), Some(libc::EIO | libc::EINVAL));
        let uncut = uncut && sealed.segmentation.is_some();
        match self.target.peer {
            Some(peer) => {
                self.peers[peer].failed(uncut);
                self.unsettled = true;
            }
            None if uncut => self.cut_no_more(),
            None => {}
        }
    }

    /// Sends whom the frame was for a packet a frame from here on.
    fn cut_no_more(&mut self) {
        if self.uncut.len() == MOST_UNCUT {
            self.uncut.remove(0);
        }
        self.uncut.push(self.target.to);
        self.target.run = 1;
    }

    /// Keeps a frame for which the socket that all share has no room, while others leave by sockets
    /// of their own: what has filled the shared one may be on its way to hosts that do not answer.
    fn put_aside(&mut self, sealed: Sealed) {
        let other = std::mem::take(&mut self.spare);
        let frame = std::mem::replace(&mut self.frame, other);
        self.waiting = Some(Waiting { frame, sealed, to: self.target.name });
    }

    /// Sends the frame that was put aside, if there is one and there is room by now.
    #[cold]
    pub(super) fn send_waiting(&mut self) {
        let Some(Waiting { frame, sealed, to }) = self.waiting.take() else { return };
        let (segment, len) = (sealed.segmentation.map(|cut| cut.segment), sealed.len);
        let datagrams = &frame[self.headers_len..len];
        let mut sent = self.listener.send_run(datagrams, segment, Some(&to));
        if sent.as_ref().is_err_and(is_notice) {
            self.heed(LISTENER);
            sent = self.listener.send_run(datagrams, segment, Some(&to));
        }
        match sent {
            Ok(()) => self.count_sent(sealed),
            Err(why) if why.kind() == io::ErrorKind::WouldBlock => {
                self.waiting = Some(Waiting { frame, sealed, to });
                return;
            }
            Err(_) => self.statistics.refused += 1,
        }
        self.spare = frame;
    }
}

/// Whether this may be what the network has said of an earlier frame, perhaps to another peer: the
/// kernel reports an ICMP message by failing the next call, whatever that is for. None of these is
/// found out after the kernel has numbered a frame, which may therefore be sent again as it is.
#[cold]
fn is_notice(why: &io::Error) -> bool {
    const NOTICES: [i32; 10] = [
        libc::ECONNREFUSED,
        libc::EHOSTUNREACH,
        libc::ENETUNREACH,
        libc::EHOSTDOWN,
        libc::ENONET,
        libc::ENOPROTOOPT,
        libc::EOPNOTSUPP,
        libc::EPROTO,
        libc::EACCES,
        libc::EMSGSIZE,
    ];
    why.raw_os_error().is_some_and(|why| NOTICES.contains(&why))
}
