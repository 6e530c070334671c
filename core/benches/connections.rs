//! What it costs to set a connection up and to end it: two NICs and their connection managers
//! joined in memory, both sides on this one thread, everything included from the queue pairs'
//! making to their taking down.
//!
//! `cargo bench -p doorbell-core --bench connections`

use std::time::Duration;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use doorbell_core::cm::{
    Config, ConnectionId, ConnectionManager, Event, Extensions, Reply, Request,
};
use doorbell_core::connect::{Agreement, Route};
use doorbell_core::encap::{Path, PathId};
use doorbell_core::nic::{Change, QueuePairConfig, QueuePairEnds, Rights, Seed};
use doorbell_core::time::Time;
use doorbell_core::wire::cm::{InitiatorDepth, ResponderResources};
use doorbell_core::wire::{CaGuid, Gid, Pkey, Psn, Qpn, ServiceId};

#[allow(dead_code, reason = "each benchmark uses a part of it")]
mod joined;

use joined::{Cable, Carry, End, apart, outer};

const SERVICE: ServiceId = ServiceId(7);
const READS: u8 = 16;
const TIME_WAIT: Duration = Duration::from_millis(1);

/// A NIC with its connection manager.
struct Side {
    end: End<Cable>,
    manager: ConnectionManager<Route>,
    /// The way to the other.
    there: Path,
}

impl Side {
    fn new(end: End<Cable>, number: u8, connections: usize) -> Self {
        let config = Config {
            connections,
            time_wait: TIME_WAIT,
            extensions: Extensions::WRITE_WITH_METADATA,
            ..Config::new(CaGuid(number.into()))
        };
        let seed = Seed::from_number(number.into());
        let manager = ConnectionManager::new(config, seed).expect("it can be");
        let there = Path::new(PathId(0), outer(number, 3 - number));
        Self { end, manager, there }
    }

    fn pair(&mut self) -> QueuePairEnds {
        let config = QueuePairConfig::new(self.end.domain, self.end.queue_id);
        self.end.nic.queue_pair(&config).expect("room")
    }

    fn change(&mut self, qpn: Qpn, change: Change) {
        self.end.nic.change(qpn, change).expect("there is a way");
    }

    fn init(&mut self, qpn: Qpn) {
        self.change(qpn, Change::Init { rights: Rights::REMOTE, pkey: Pkey::DEFAULT });
    }

    fn ready_to_receive(&mut self, qpn: Qpn, agreement: &Agreement, extensions: Extensions) {
        let connection = agreement.connection(self.there.in_the_clear(), extensions);
        self.change(qpn, Change::ReadyToReceive(Box::new(connection)));
    }

    fn event(&mut self) -> Event<Route> {
        self.manager.event().expect("something was heard")
    }

    /// Flushes a queue pair whose connection is over.
    fn flush(&mut self, qpn: Qpn) {
        self.change(qpn, Change::Error);
        while self.end.nic.event().is_some() {}
    }

    fn advance(&mut self, now: Time) {
        self.end.nic.advance(now);
        self.manager.advance(now);
        self.end.nic.transmit(&mut self.end.out);
    }
}

/// What one side has to say arrives at the other.
fn carry(from: &mut Side, to: &mut Side) {
    while let Some(datagram) = from.manager.transmit() {
        let path = datagram.way.path(PathId(0));
        from.end.nic.manage(path, datagram.bytes).expect("room");
    }
    Cable::carry(&mut from.end, &mut to.end);
    while let Some(received) = to.end.nic.management() {
        to.manager.receive(&Route::back(&received), &received.bytes);
    }
}

/// A connection that stands, at one side.
struct Standing {
    name: ConnectionId,
    ends: QueuePairEnds,
}

fn connect(a: &mut Side, b: &mut Side) -> [Standing; 2] {
    let asks = a.pair();
    a.init(asks.qpn);
    let (from, to) = a.there.outer().gids();
    let psn = a.end.nic.first_psn();
    let request = terms(asks.qpn, psn, from, to);
    let asking = a.manager.connect(Route::along(&a.there), &request, b"").expect("room");
    carry(a, b);

    let Event::Asked { id, request, extensions, .. } = b.event() else { panic!("asked") };
    let answers = b.pair();
    b.init(answers.qpn);
    let psn = b.end.nic.first_psn();
    let reply = Reply::to(&request, answers.qpn, psn, READS);
    let responders = Agreement::responders(&request, &reply);
    b.ready_to_receive(answers.qpn, &responders, extensions);
    let agreed = b.manager.accept(id, &reply, b"").expect("it is to be decided");
    carry(b, a);

    let Event::Replied { reply, extensions, .. } = a.event() else { panic!("taken up") };
    let requesters = Agreement::requesters(&request, &reply);
    a.ready_to_receive(asks.qpn, &requesters, extensions);
    a.change(asks.qpn, Change::ReadyToSend(requesters.sending(extensions)));
    a.manager.ready(asking, b"").expect("taken up");
    carry(a, b);

    let Event::Established { .. } = b.event() else { panic!("it stands") };
    b.change(answers.qpn, Change::ReadyToSend(responders.sending(agreed)));
    [Standing { name: asking, ends: asks }, Standing { name: id, ends: answers }]
}

fn terms(qpn: Qpn, psn: Psn, from: Gid, to: Gid) -> Request {
    Request {
        responder_resources: ResponderResources(READS),
        initiator_depth: InitiatorDepth(READS),
        flow_control: true,
        ..Request::new(SERVICE, qpn, psn, from, to)
    }
}

fn part(a: &mut Side, b: &mut Side, [asked, answered]: [Standing; 2], now: Time) {
    a.flush(asked.ends.qpn);
    a.manager.disconnect(asked.name, b"").expect("it stands");
    carry(a, b);
    let Event::Ended { .. } = b.event() else { panic!("ended") };
    b.flush(answered.ends.qpn);
    carry(b, a);
    let Event::Ended { .. } = a.event() else { panic!("ended") };
    for (side, standing) in [(a, asked), (b, answered)] {
        side.advance(now);
        let Event::Released { .. } = side.event() else { panic!("released") };
        let qpn = standing.ends.qpn;
        drop(standing);
        side.end.nic.drop_queue_pair(qpn).expect("everything is flushed");
    }
}

fn connections(c: &mut Criterion) {
    let mut group = c.benchmark_group("a connection made and ended, both sides, among");
    for others in [0, 1000] {
        let (end_a, end_b) = apart(others + 1);
        let (mut a, mut b) = (Side::new(end_a, 1, others + 1), Side::new(end_b, 2, others + 1));
        b.manager.listen(SERVICE, 1).expect("nobody else does");
        let _standing: Vec<_> = (0..others).map(|_| connect(&mut a, &mut b)).collect();
        let mut now = Time::ZERO;
        group.bench_function(BenchmarkId::from_parameter(others), |bench| {
            bench.iter(|| {
                let standing = connect(&mut a, &mut b);
                now = now + TIME_WAIT + Duration::from_micros(10);
                part(&mut a, &mut b, standing, now);
            });
        });
        assert_eq!(a.end.nic.objects().queue_pairs, others);
        assert_eq!((a.manager.usage().live, b.manager.usage().live), (others, others));
    }
    group.finish();
}

fn short() -> Criterion {
    Criterion::default()
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1))
}

criterion_group! { name = benches; config = short(); targets = connections }
criterion_main!(benches);
