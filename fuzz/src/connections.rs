//! Two connection managers, given whatever a network, programs and strangers may do.
//!
//! The input is a list of actions: a datagram that one manager sent is carried, carried twice,
//! damaged, or lost; what was carried before comes again, in part another message; bytes come that
//! are anything; time passes; programs ask, agree, decide otherwise, end, and listen.
//!
//! What is checked after each action: no table holds more than it was configured to, what is sent
//! is a message that survives being sent, and the events of a connection come in their order, each
//! at most once. In the end both programs end what stands, time passes, and nothing is left.

use std::collections::BTreeMap;
use std::time::Duration;

use doorbell_core::cm::{
    Config, ConnectionId, ConnectionManager, ConnectionState, Event, Extensions, Reply, Request,
    Usage,
};
use doorbell_core::nic::Seed;
use doorbell_core::time::Time;
use doorbell_core::wire::cm::{CmPort, CmRetries, CmTimeout, IpCm, IpPair, Mad, RejectReason};
use doorbell_core::wire::{CaGuid, Gid, Psn, Qpn, ServiceId};

use super::check::can_be_shown;
use super::input::Input;

const BY_KEYS: Extensions = Extensions::ENCRYPTED_BY_KEYS;
const CONNECTIONS: usize = 6;
const TIME_WAITS: usize = 4;
const OUTGOING: usize = 8;
const HALF_OPEN: usize = 3;
const PORT: CmPort = CmPort(7174);
const SERVICES: [ServiceId; 3] = [ServiceId(1), ServiceId(2), ServiceId::from_tcp_port(PORT)];
/// How many datagrams are remembered, to come again.
const REMEMBERED: usize = 16;

type Datagram = [u8; Mad::LEN];

/// Two managers and all that happens to them.
pub fn cm(data: &[u8]) {
    let mut input = Input(data);
    let mut world = World::new(input.u8());
    while !input.is_empty() {
        world.act(&mut input);
        world.sides.iter_mut().for_each(Side::check);
    }
    world.end();
}

/// The events of a connection that its program has had, in the order in which they may come.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Told {
    Nothing,
    Met,
    Stands,
    Over,
}

struct Side {
    manager: ConnectionManager<u8>,
    /// The connections that were not released, and what their program was told of each.
    told: BTreeMap<ConnectionId, Told>,
}

struct World {
    sides: [Side; 2],
    now: Time,
    /// Datagrams that were on the network, and whose they were.
    heard: Vec<(usize, Datagram)>,
}

impl World {
    fn new(seed: u8) -> Self {
        let side = |index: u8| {
            let config = Config {
                tag: u32::from(index) + 1,
                tag_bits: 2,
                owner: seed & 1 << index == 0,
                connections: CONNECTIONS,
                time_waits: TIME_WAITS,
                services: 2,
                outgoing: OUTGOING,
                half_open: HALF_OPEN,
                extensions: Extensions::WRITE_WITH_METADATA | Extensions::ENCRYPTION,
                ..Config::new(CaGuid(u64::from(index)))
            };
            let seed = Seed::from_number(u64::from(seed) << 1 | u64::from(index));
            let mut manager = ConnectionManager::new(config, seed).expect("it can be");
            manager.listen(SERVICES[2], 2).expect("the first service");
            Side { manager, told: BTreeMap::new() }
        };
        Self { sides: [side(0), side(1)], now: Time::ZERO, heard: Vec::new() }
    }

    fn act(&mut self, input: &mut Input<'_>) {
        let action = input.u8();
        let me = usize::from(action >> 7);
        match action & 0xF {
            0..4 => self.carry(me, input),
            4 => self.again(me, input),
            5 => {
                let len = usize::from(input.u16() % 300);
                self.sides[me].manager.receive(&(1 - me as u8), input.bytes(len));
            }
            6 => {
                let delay = Duration::from_micros(u64::from(input.u16()) << (input.u8() % 16));
                self.now = self.now + delay;
                let next = self.sides[me].manager.next_timeout();
                // Now and then exactly to the next time-out, and not beyond.
                let now = next.filter(|_| delay.is_zero()).unwrap_or(self.now);
                self.now = self.now.max(now);
                self.sides.iter_mut().for_each(|side| side.manager.advance(self.now));
            }
            7..9 => self.connect(me, input),
            9..11 => self.sides[me].decide(input),
            11..14 => self.sides[me].agree(),
            14 => self.sides[me].listen(input),
            _ => self.sides[me].hear(),
        }
    }

    /// The next datagram of one side comes to the other, or does not, or comes damaged.
    fn carry(&mut self, from: usize, input: &mut Input<'_>) {
        let Some(datagram) = self.sides[from].send() else { return };
        let fate = input.u8();
        if self.heard.len() < REMEMBERED {
            self.heard.push((from, datagram));
        } else {
            self.heard[usize::from(fate) % REMEMBERED] = (from, datagram);
        }
        let mut datagram = datagram;
        match fate & 7 {
            0 => return,
            1 => datagram[usize::from(input.u8())] ^= input.u8(),
            _ => {}
        }
        for _ in 0..1 + usize::from(fate & 7 == 2) {
            self.sides[1 - from].manager.receive(&(from as u8), &datagram);
        }
    }

    /// Delivers a datagram again that was on the network before: perhaps as another message, with
    /// other communication IDs, or from another sender.
    fn again(&mut self, to: usize, input: &mut Input<'_>) {
        let Some(count) = self.heard.len().checked_sub(1) else { return };
        let (from, mut datagram) = self.heard[usize::from(input.u8()).min(count)];
        let how = input.u8();
        if how & 1 != 0 {
            datagram[16..18].copy_from_slice(&[0, 0x10 + input.u8() % 9]);
        }
        if how & 2 != 0 {
            let (names, rest) = datagram[24..].split_at_mut(4);
            names.swap_with_slice(&mut rest[..4]);
        }
        if how & 4 != 0 {
            let at = usize::from(input.u8()).min(Mad::LEN - 4);
            datagram[at..at + 4].copy_from_slice(&input.array::<4>());
        }
        let way = if how & 8 != 0 { input.u8() } else { from as u8 };
        self.sides[to].manager.receive(&way, &datagram);
    }

    fn connect(&mut self, me: usize, input: &mut Input<'_>) {
        let [service, qpn, timeouts, len, retries] = input.array();
        let service = SERVICES[usize::from(service) % SERVICES.len()];
        let qpn = Qpn::new(16 + u32::from(qpn % 8));
        let gid = Gid::default();
        let mut request = Request::new(service, qpn, Psn::new(1), gid, gid);
        if service.ip_port().is_some() || retries & 0x40 != 0 {
            let [source, destination] = [1, 2].map(|last| [10, 0, 0, last].into());
            let addresses = IpPair::V4 { source, destination };
            request.addressing = Some(IpCm { source_port: PORT, addresses });
        }
        request.remote_timeout = CmTimeout::new(timeouts);
        request.local_timeout = CmTimeout::new(timeouts >> 3);
        request.retries = CmRetries::new(retries);
        let side = &mut self.sides[me];
        let made = side.manager.connect(1 - me as u8, &request, &[7; 255][..usize::from(len)]);
        can_be_shown(&made);
        if let Ok(id) = made {
            assert_eq!(side.told.insert(id, Told::Nothing), None, "a name that was in use");
        }
    }

    /// Has both programs end all connections, and loses every datagram from here on. Asserts that
    /// nothing is left at the end.
    fn end(mut self) {
        for side in &mut self.sides {
            let mut rounds = 0;
            loop {
                side.hear();
                let ids: Vec<_> = side.told.keys().copied().collect();
                for id in ids {
                    if side.manager.state(id) == Some(ConnectionState::Established) {
                        side.manager.disconnect(id, &[]).expect("it stands");
                    }
                }
                while side.send().is_some() {}
                let Some(next) = side.manager.next_timeout() else { break };
                side.manager.advance(next);
                side.check();
                rounds += 1;
                assert!(rounds < 10_000, "it never ends");
            }
            assert_eq!(side.told, BTreeMap::new(), "connections that nobody released");
            let usage = Usage { services: 0, ..side.manager.usage() };
            assert_eq!(usage, Usage::default());
        }
    }
}

impl Side {
    fn send(&mut self) -> Option<Datagram> {
        let bytes = self.manager.transmit()?.bytes;
        let mad = Mad::parse(&bytes).expect("what is sent parses");
        let mut again = [0xA5; Mad::LEN];
        mad.emit(&mut again);
        assert_eq!(again, bytes);
        Some(bytes)
    }

    /// A program's decision about one of its connections, sensible or not.
    fn decide(&mut self, input: &mut Input<'_>) {
        let [which, what, number, len] = input.array();
        let Some(count) = self.told.len().checked_sub(1) else { return };
        let id = *self.told.keys().nth(usize::from(which).min(count)).expect("one of them");
        let private = &[9; 255][..usize::from(len)];
        let manager = &mut self.manager;
        let qpn = Qpn::new(32 + u32::from(number % 8));
        let done = match what % 10 {
            0 | 1 => manager.accept(id, &Reply::new(qpn, Psn::new(2)), private).map(drop),
            // Of which a program knows only by the event.
            2 | 3 if self.told[&id] < Told::Met => return,
            2 | 3 => manager.ready(id, private),
            4 => manager.reject(id, RejectReason::new(u16::from(number)), private),
            5 => manager.disconnect(id, private),
            6 => manager.delay(id, CmTimeout::new(number)),
            7 => manager.confirm(id, private),
            8 => manager.answer(id, private, BY_KEYS),
            _ if number & 1 != 0 => manager.arrived(id),
            _ => manager.cancel(id),
        };
        can_be_shown(&done);
        if done.is_ok() && matches!(what % 10, 2 | 3) {
            self.tell(id, Told::Stands);
        }
    }

    /// A program hears everything, and takes up every connection.
    fn agree(&mut self) {
        self.hear();
        let ids: Vec<_> = self.told.keys().copied().collect();
        for id in ids {
            match self.manager.state(id) {
                Some(ConnectionState::ReqReceived) => {
                    let qpn = Qpn::new(64 + (id.comm_id().0 & 0xFFFF));
                    // Either it is in a handshake, or it is not.
                    can_be_shown(&self.manager.answer(id, &[1], BY_KEYS));
                    can_be_shown(&self.manager.accept(id, &Reply::new(qpn, Psn::new(2)), &[]));
                }
                Some(ConnectionState::RepReceived) if self.manager.confirm(id, &[1]).is_err() => {
                    self.manager.ready(id, &[]).expect("there is a reply");
                    self.tell(id, Told::Stands);
                }
                _ => {}
            }
        }
    }

    fn listen(&mut self, input: &mut Input<'_>) {
        let [what, which] = input.array();
        let service = SERVICES[usize::from(which) % SERVICES.len()];
        let manager = &mut self.manager;
        can_be_shown(&match what % 6 {
            0 | 1 => manager.listen(service, usize::from(which >> 4)),
            2 => manager.stop(service),
            3 => manager.others_listen(service, which & 0x80 != 0),
            4 => manager.set_vacant(u32::from(which & 7), which & 0x80 != 0),
            _ => {
                manager.set_owner(which & 1 != 0);
                Ok(())
            }
        });
    }

    fn hear(&mut self) {
        while let Some(event) = self.manager.event() {
            can_be_shown(&event);
            match event {
                Event::Asked { id, .. } => {
                    assert_eq!(self.told.insert(id, Told::Met), None, "a name that was in use");
                }
                Event::Replied { id, .. } => self.tell(id, Told::Met),
                Event::Established { id, .. } => self.tell(id, Told::Stands),
                Event::Failed { id, .. } => {
                    assert_ne!(self.told.get(&id), Some(&Told::Stands), "it stood, and ended");
                    self.tell(id, Told::Over);
                }
                Event::Ended { id, .. } => {
                    assert_eq!(self.told.get(&id), Some(&Told::Stands), "it did not stand");
                    self.tell(id, Told::Over);
                }
                Event::Claimed { id } => {
                    let told = self.told.get(&id);
                    assert!(
                        told.is_some_and(|&told| told > Told::Met),
                        "it did not stand: {told:?}"
                    );
                }
                Event::Newcomer { .. } | Event::Shaken { .. } | Event::Identified { .. } => {}
                Event::Released { id, .. } => {
                    let told = self.told.remove(&id).expect("released once");
                    assert_ne!(told, Told::Stands, "it stood, and nobody was told of its end");
                }
            }
        }
    }

    /// Notes what a program was told of a connection: later things follow on earlier ones.
    fn tell(&mut self, id: ConnectionId, now: Told) {
        let told = self.told.get_mut(&id).expect("asked for, here or there, and not released");
        assert!(*told < now, "{now:?} after {told:?}");
        *told = now;
    }

    fn check(&mut self) {
        let Usage { live, places, names, half_open, ways, services, events, outgoing } =
            self.manager.usage();
        assert!(live <= CONNECTIONS && live <= places && places <= CONNECTIONS + TIME_WAITS);
        assert!(names <= 3 * places && events <= 6 * places, "{names} names, {events} events");
        assert!(half_open <= HALF_OPEN && ways <= live, "{half_open} half-open, {ways} ways");
        assert!(services <= 2 && outgoing <= OUTGOING);
    }
}
