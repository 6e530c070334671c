//! Changes of queue pairs: made, connected, reset and taken down.

use doorbell_core::nic::{
    Change, ChangeError, Connection, QueuePairConfig, ResourceError, Rights, Sending, State,
    Transport,
};
use doorbell_core::wire::{Pkey, Psn, RnrTimer};

use super::super::input::Input;
use super::lines::Line;
use super::packets::{QKEY, Within};
use super::pair::WINDOW;
use super::paths::{FOREIGN, MTU, PAIRS, path_to, path_to_moved, peer, same_host, transport};
use super::world::World;

impl World {
    /// Makes a queue pair. One of another domain can't share receives.
    pub(super) fn make(&mut self, index: usize, shares: bool) {
        let domain = self.pairs[index].domain;
        let own = self.queues[index / 2 % 3].0;
        let config = QueuePairConfig {
            transport: transport(index),
            receive_completions: if shares { self.shared.completions } else { own },
            shared_receives: shares.then_some(self.shared.id),
            send_depth: 4 + index,
            receive_depth: 4,
            ..QueuePairConfig::new(domain, self.queues[index % 3].0)
        };
        let ends = match self.nic.queue_pair(&config) {
            Ok(ends) => ends,
            Err(error) => {
                assert_eq!(error, ResourceError::OtherShared(self.shared.id));
                assert!(shares && index == FOREIGN, "{error}");
                return;
            }
        };
        self.unhear(ends.qpn);
        let pair = &mut self.pairs[index];
        (pair.qpn, pair.shares, pair.within) = (Some(ends.qpn), shares, Within::Nothing);
        pair.ends = Some(ends);
        self.port.lines[index] = Line::default();
    }

    /// Asks for a change of a queue pair's state. Many are refused.
    pub(super) fn change(&mut self, index: usize, change: usize, input: &mut Input<'_>) {
        let expected = Psn::new([0, 0xFF_FFFE, 0x7F_FFFF][usize::from(input.u8()) % 3]);
        let first = Psn::new([0xFF_FFFD, 0, 0x80_0000][usize::from(input.u8()) % 3]);
        let change = match change % 7 {
            0 => {
                let write = Rights::REMOTE_WRITE;
                let all = [Rights::REMOTE, Rights::REMOTE, write | Rights::REMOTE_READ];
                let all = [all[0], all[1], all[2], Rights::REMOTE_ATOMIC, write, Rights::NONE];
                Change::Init { rights: input.choose(&all), pkey: Pkey::DEFAULT }
            }
            1 => match (transport(index), input.u8()) {
                (Transport::Datagram, 0..250) | (_, 255) => {
                    Change::ReadyForDatagrams { qkey: QKEY, mtu: MTU }
                }
                _ => Change::ReadyToReceive(Box::new(self.connection(index, expected, input))),
            },
            2 => Change::ReadyToSend(self.sending(first, input)),
            3 => Change::Drain,
            4 => Change::Resume,
            5 => Change::Error,
            _ => return self.reset(index),
        };
        let Some(qpn) = self.pairs[index].qpn else { return };
        let (rights, takes, sends) = match &change {
            Change::Init { rights, .. } => (Some(*rights), None, false),
            Change::ReadyToReceive(connection) => {
                let Connection { reads, metadata, selective, .. } = **connection;
                (None, Some((reads, metadata, selective)), false)
            }
            Change::ReadyToSend(_) => (None, None, true),
            _ => (None, None, false),
        };
        if self.nic.change(qpn, change).is_err() {
            return;
        }
        let pair = &mut self.pairs[index];
        if let Some((reads, metadata, selective)) = takes {
            assert_ne!(transport(index), Transport::Datagram, "it has no connection");
            (pair.reads, pair.metadata, pair.within) = (reads, metadata, Within::Nothing);
            pair.refused = false;
            let line = &mut self.port.lines[index];
            (line.expected, line.selective) = (expected, selective && !self.lossless);
        }
        pair.rights = rights.unwrap_or(pair.rights);
        if sends {
            self.port.sent[index] = first;
        }
    }

    /// Forgets a connection, by the ends of its queue pair: those of two are refused.
    pub(super) fn reset(&mut self, index: usize) {
        self.hear();
        let other = (index + 1) % PAIRS;
        let Ok([one, other]) = self.pairs.get_disjoint_mut([index, other]) else { return };
        let Some(ends) = &mut one.ends else { return };
        if let Some(others) = &mut other.ends {
            let (send, receive) = (ends.qpn, others.qpn);
            let refused = self.nic.reset(&mut ends.send, &mut others.receive);
            assert_eq!(refused, Err(ChangeError::OfTwo { send, receive }));
        }
        let qpn = ends.qpn;
        match self.nic.reset(&mut ends.send, &mut ends.receive) {
            Ok(()) => {
                one.within = Within::Nothing;
                self.port.lines[index] = Line::default();
                self.unhear(qpn);
            }
            Err(ChangeError::Outstanding { outstanding, .. }) => assert!(outstanding > 0),
            Err(error) => panic!("{error}"),
        }
    }

    /// Connects a queue pair anew, whatever has become of it, if all of it can be flushed.
    pub(super) fn recover(&mut self, index: usize, input: &mut Input<'_>) {
        self.change(index, 5, input);
        let turns = input.u8();
        for queue in 0..3 {
            self.poll(queue, 64);
        }
        if turns & 1 == 0 {
            self.transmit(0);
        }
        self.poll(usize::from(turns >> 1) % 3, 64);
        for step in [6, 0, 1, 2] {
            self.change(index, step, input);
        }
        self.port.memory.renew_taken_back(&mut self.nic);
    }

    /// Redirects a connection to another address of the peer, or to another peer, which must be
    /// refused.
    pub(super) fn redirect(&mut self, index: usize, input: &mut Input<'_>) {
        let Some(qpn) = self.pairs[index].qpn else { return };
        let to = usize::from(input.u8());
        let to = if to < 192 { index } else { to % PAIRS };
        let path = match input.u8() & 1 {
            0 => path_to_moved(to),
            _ => path_to(to),
        };
        // A path's number says whose packets go along it.
        if to != index && same_host(to, index) {
            return;
        }
        let done = self.nic.redirect(qpn, path);
        assert!(done.is_err() || to == index, "a connection was given away");
        let connected = matches!(
            self.nic.state(qpn),
            Some(State::ReadyToReceive | State::ReadyToSend | State::Draining)
        );
        let datagram = transport(index) == Transport::Datagram;
        assert!(done.is_ok() || to != index || !connected || datagram, "{done:?}");
    }

    /// Drops the ends of a queue pair, takes it down, or makes another.
    pub(super) fn drop_or_make(&mut self, index: usize, input: &mut Input<'_>) {
        let how = input.u8();
        let pair = &mut self.pairs[index];
        let Some(qpn) = pair.qpn else { return self.make(index, how & 2 != 0) };
        if pair.ends.is_some() {
            let state = self.nic.state(qpn);
            assert_eq!(self.nic.drop_queue_pair(qpn), Err(ResourceError::HasEnds(qpn)));
            assert_eq!(self.nic.state(qpn), state);
            pair.ends = None;
            if how & 1 == 0 {
                return;
            }
        }
        match self.nic.drop_queue_pair(qpn) {
            // Another may get the number.
            Ok(()) => pair.qpn = None,
            Err(ResourceError::Outstanding { outstanding, .. }) => assert!(outstanding > 0),
            Err(error) => panic!("{error}"),
        }
    }

    fn connection(&self, index: usize, expected: Psn, input: &mut Input<'_>) -> Connection {
        let mut connection = Connection::new(peer(index), path_to(index), MTU, expected);
        connection.not_ready = RnrTimer::from_code(input.u8() & 31);
        connection.ack_every = u16::from(input.u8() & 3);
        connection.credits = input.u8() & 1 == 0;
        connection.reads = input.choose(&[16, 16, 16, 4, 4, 1, 1, 0]);
        connection.metadata = input.u8() < 240;
        let reliable = transport(index) == Transport::Reliable;
        connection.selective = self.selective && reliable && input.u8() < 240;
        connection
    }

    fn sending(&self, first: Psn, input: &mut Input<'_>) -> Sending {
        let mut sending = Sending::new(first);
        sending.window = 1 + u32::from(input.u8()) % WINDOW as u32;
        sending.retries = input.choose(&[7, 3, 255, 0]);
        sending.rnr_retries = input.u8() & 7;
        sending.ask_each = input.u8() & 1 == 0;
        sending.reads = input.choose(&[16, 16, 16, 4, 4, 1, 1, 0]);
        sending.metadata = input.u8() < 240;
        sending.selective = self.selective && input.u8() < 240;
        sending.congestion = self.controlled;
        sending
    }
}
