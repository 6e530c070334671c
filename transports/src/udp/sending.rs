//! How frames leave.

use std::io;
use std::net::SocketAddr;

use doorbell_core::encap::{Full, Path, Run, Sealed};
use doorbell_core::payload::Payload;
use doorbell_core::wire::{Headers, IpId};

use super::{LISTENER, Target, Udp, headers};
use crate::sys::udp::Name;

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
                self.run = self.begin(path);
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

    /// Begins a frame along a path, if that leads to a socket.
    #[inline]
    fn begin(&mut self, path: &Path) -> Option<Run> {
        // By the path's headers: its number may have been another's before.
        let to = headers::destination(path.outer(), self.own)?;
        if self.target.to != to {
            self.aim(to);
        }
        let (id, most) = match self.target.peer.and_then(|peer| self.peers[peer].sends()) {
            Some(known) => known,
            None => (IpId(0), self.unconnected(to)),
        };
        Some(Run::begin(path, &mut self.frame, id, most))
    }

    #[cold]
    pub(super) fn aim(&mut self, to: SocketAddr) {
        let peer = self.peers.iter().position(|peer| peer.address == to);
        self.target = Target { to, name: Name::of(to), peer };
    }

    /// Has the frame leave by the socket that all share; how many packets it may have there.
    #[cold]
    fn unconnected(&mut self, to: SocketAddr) -> u32 {
        let is_new = self.target.peer.take().is_none();
        if is_new && self.connects && self.wanted.is_none() && self.often.count(to) {
            self.wanted = Some(to);
        }
        self.run_most
    }

    /// Hands the frame to the system, if there is one.
    #[inline]
    pub(super) fn send(&mut self) {
        let Some(run) = self.run.take() else { return };
        let sealed = run.seal(&mut self.frame);
        match self.hand_over(sealed) {
            Ok(()) => {
                self.stuck = false;
                self.statistics.frames_sent += 1;
                self.statistics.packets_sent += u64::from(sealed.packets);
                self.statistics.bytes_sent += sealed.len as u64;
                if let Some(peer) = self.target.peer {
                    self.peers[peer].sent(self.statistics.frames_sent);
                }
            }
            Err(why) => self.refused(run, sealed, &why),
        }
    }

    #[inline]
    fn hand_over(&self, sealed: Sealed) -> io::Result<()> {
        let datagrams = &self.frame[self.headers_len..sealed.len];
        let segment = sealed.segmentation.map(|segmentation| segmentation.segment);
        let send = || match (self.target.peer, segment) {
            (Some(peer), None) => self.peers[peer].socket.send(datagrams),
            (Some(peer), Some(_)) => self.peers[peer].socket.send_run(datagrams, segment, None),
            (None, _) => self.listener.send_run(datagrams, segment, Some(&self.target.name)),
        };
        match send() {
            // Notice of what became of an earlier one: this one was not looked at.
            Err(why) if is_notice(&why) => send(),
            result => result,
        }
    }

    /// What becomes of a frame that the system did not take.
    #[cold]
    fn refused(&mut self, run: Run, sealed: Sealed, why: &io::Error) {
        self.stuck = why.kind() == io::ErrorKind::WouldBlock;
        if self.stuck {
            self.run = Some(run);
            if self.turns.asleep {
                // Of turns that are taken before sleeping. What is watched can be watched for this.
                let _ = self.wait_for_room();
            }
            return;
        }
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
            None if uncut => self.run_most = 1,
            None => {}
        }
    }
}

/// Whether this is what the network has said of a frame.
#[cold]
fn is_notice(why: &io::Error) -> bool {
    let notices = [libc::ECONNREFUSED, libc::EHOSTUNREACH, libc::ENETUNREACH, libc::EHOSTDOWN];
    why.raw_os_error().is_some_and(|why| notices.contains(&why))
}
