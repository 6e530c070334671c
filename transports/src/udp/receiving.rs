//! How frames are taken from the sockets of a device.

use std::io;

use doorbell_core::nic::Inbox;

use super::peer::{ClosedPort, REPORTS, hint_of_narrow_path};
use super::state::{LISTENER, Udp};
use crate::sys::udp::{Report, UdpSocket};

impl Udp {
    /// Takes a frame from a socket, and hands its packets to `inbox`. Returns whether there was
    /// one.
    #[inline]
    pub(super) fn take(&mut self, socket: usize, inbox: &mut impl Inbox) -> bool {
        let taken = match socket {
            LISTENER => self.take_from_anybody(None, inbox),
            peer => {
                let clocks = (&mut self.wall, &self.clock);
                self.peers[peer - 1].receive(&mut self.opener, &mut self.buffer, clocks, inbox)
            }
        };
        match taken {
            Ok(len) => {
                self.count(len);
                true
            }
            Err(why) => {
                if why.kind() != io::ErrorKind::WouldBlock {
                    self.statistics.unreachable += 1;
                    self.read_reports(socket);
                }
                false
            }
        }
    }

    /// Counts a frame that was received.
    #[inline]
    pub(super) fn count(&mut self, len: usize) {
        // A datagram without packets is no frame: peers send them to learn identifications.
        if len > 0 {
            self.statistics.frames_received += 1;
            self.statistics.bytes_received += (self.headers_len + len) as u64;
        }
    }

    /// Takes a frame from a socket that receives what anybody sends: the listener, if none is
    /// given. Returns the frame's length.
    pub(super) fn take_from_anybody(
        &mut self,
        socket: Option<&UdpSocket>,
        inbox: &mut impl Inbox,
    ) -> io::Result<usize> {
        let received = socket.unwrap_or(&self.listener).receive(&mut self.buffer, true)?;
        match received.from.and_then(|from| self.senders.from(from)) {
            Some(sender) => {
                let datagrams = &self.buffer[..received.len];
                inbox.arrived(self.wall.time_of(received.stamp, &self.clock));
                let how = (received.segment, received.marked);
                sender.deliver(&mut self.opener, datagrams, how, inbox);
            }
            None => self.statistics.strangers += 1,
        }
        Ok(received.len)
    }

    /// Takes the frames that wait at a socket, up to `most`, and returns how many they were.
    pub(super) fn drain(&mut self, socket: usize, most: usize, inbox: &mut impl Inbox) -> usize {
        (0..most).take_while(|_| self.take(socket, inbox)).count()
    }

    /// Reads what the kernel reports of a socket. A report that nobody reads keeps the socket
    /// ready.
    #[cold]
    pub(super) fn read_reports(&mut self, socket: usize) {
        match socket {
            LISTENER => {
                for report in (0..REPORTS).map_while(|_| self.listener.report()) {
                    match report {
                        Report::TooLong { mtu, here: false } => {
                            hint_of_narrow_path(&mut self.narrow, mtu);
                        }
                        Report::Closed { at, quoted } => {
                            self.closed.add(ClosedPort { at, quoted });
                        }
                        _ => {}
                    }
                }
            }
            peer => self.peers[peer - 1].read_reports(&mut self.closed),
        }
    }
}
