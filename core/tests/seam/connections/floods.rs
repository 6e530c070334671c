//! Strangers that send requests from as many addresses as they like, as fast as the network
//! carries.

use std::collections::HashMap;
use std::time::Duration;

use doorbell_core::cm::{Config, ConnectionError, ConnectionState, Event, Request, Why};
use doorbell_core::time::Time;
use doorbell_core::wire::cm::{CmRetries, CmTimeout, Mad, RejectReason};
use doorbell_core::wire::{CaGuid, Qpn};

use crate::connections::common::*;

/// What the program of a flooded manager does with those who ask.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Program {
    /// It takes each up, at once, and so has a queue pair for each.
    Accepts,
    /// It refuses strangers.
    Refuses,
    /// It decides about none but the honest client.
    Sleeps,
}

struct Flood {
    /// Requests a second, and from how many addresses.
    rate: u32,
    sources: usize,
    program: Program,
}

/// The way by which the honest client is reached; strangers have the numbers behind it.
const HONEST: usize = 0;
/// How long the client's messages take to come to the manager, and back.
const DELAY: Duration = Duration::from_micros(100);
const STRANGERS_QPN: u32 = 1000;

/// What came of it.
#[derive(Debug)]
struct Outcome {
    /// How long the honest client had to ask, at most, of all its connections.
    longest: Duration,
    failed: usize,
    /// The most that the manager held at a time.
    live: usize,
    places: usize,
    half_open: usize,
}

/// A request of a stranger's, with the longest time-outs that there are.
fn forged() -> [u8; Mad::LEN] {
    let longest = CmTimeout::MAX;
    let terms = Request {
        remote_timeout: longest,
        local_timeout: longest,
        retries: CmRetries::MAX,
        ..request(STRANGERS_QPN)
    };
    let mut stranger = manager(config(2), 2);
    stranger.connect(1, &terms, b"").unwrap();
    stranger.transmit().unwrap().bytes
}

/// Has an honest client connect to a flooded manager again and again.
fn run(flood: &Flood) -> Outcome {
    let mut luck = Luck(9);
    // A server with the customary numbers, at which 500 connections stand.
    let mut server = manager(Config::new(CaGuid(1)), 1);
    server.listen(SERVICE, 128).unwrap();
    let mut forged = forged();
    let mut client = manager(config(0), 3);
    let mut standing = Vec::new();
    for number in 0..500 {
        let asking = client.connect(1, &request(2 * number + 2), b"").unwrap();
        server.receive(&HONEST, &client.transmit().unwrap().bytes);
        let Some(Event::Asked { id, .. }) = server.event() else { panic!() };
        server.accept(id, &reply(2 * number + 2), b"").unwrap();
        client.receive(&1, &server.transmit().unwrap().bytes);
        client.event().unwrap();
        client.ready(asking, b"").unwrap();
        server.receive(&HONEST, &client.transmit().unwrap().bytes);
        assert!(matches!(server.event(), Some(Event::Established { .. })));
        standing.push(id);
    }
    let (mut now, mut numbered, mut qpn) = (Time::ZERO, 0_u32, 10_000);
    let (mut asking, mut since) = (None, now);
    let mut outcome =
        Outcome { longest: Duration::ZERO, failed: 0, live: 0, places: 0, half_open: 0 };
    let step = Duration::from_secs(1) / flood.rate;
    let mut underway: Vec<(Time, bool, [u8; Mad::LEN])> = Vec::new();
    for count in 0..flood.rate * 6 {
        now = now + step;
        server.advance(now);
        client.advance(now);
        // Of one source it is the honest client's own address.
        let way = luck.below(flood.sources as u64) as usize + usize::from(flood.sources > 1);
        // On average one for each step.
        for _ in 0..luck.below(3) {
            numbered += 1;
            // Another GUID each time.
            forged[24 + 16..24 + 20].copy_from_slice(&numbered.to_be_bytes());
            server.receive(&way, &forged);
        }
        // The flood is at its height before the client comes.
        if asking.is_none() && count > flood.rate * 2 && count % (flood.rate / 50) == 0 {
            qpn += 1;
            asking = Some(
                client
                    .connect(
                        1,
                        &Request::new(
                            SERVICE,
                            Qpn::new(qpn),
                            request(1).psn,
                            request(1).path.local_gid,
                            request(1).path.remote_gid,
                        ),
                        b"honest",
                    )
                    .unwrap(),
            );
            since = now;
        }
        while let Some(datagram) = client.transmit() {
            underway.push((now + DELAY, true, datagram.bytes));
        }
        while let Some(event) = server.event() {
            match event {
                Event::Asked { id, private, .. } => {
                    numbered += 1;
                    match flood.program {
                        _ if private.starts_with(b"honest") => {
                            server.accept(id, &reply(500_000 + numbered), b"").unwrap();
                        }
                        Program::Accepts => {
                            server.accept(id, &reply(500_000 + numbered), b"").unwrap();
                        }
                        Program::Refuses => {
                            server.reject(id, RejectReason::CONSUMER, b"").unwrap();
                        }
                        Program::Sleeps => {}
                    }
                }
                Event::Ended { id, .. } => assert!(!standing.contains(&id), "{id}"),
                _ => {}
            }
        }
        while let Some(datagram) = server.transmit() {
            if datagram.way == HONEST {
                underway.push((now + DELAY, false, datagram.bytes));
            }
        }
        for (_, to_server, bytes) in underway.extract_if(.., |flying| flying.0 <= now) {
            match to_server {
                true => server.receive(&HONEST, &bytes),
                false => client.receive(&1, &bytes),
            }
        }
        while let Some(event) = client.event() {
            match event {
                Event::Replied { id, .. } => client.ready(id, b"").unwrap(),
                Event::Failed { .. } => {
                    outcome.failed += 1;
                    asking = None;
                }
                _ => {}
            }
        }
        if asking.is_some_and(|id| client.state(id) == Some(ConnectionState::Established)) {
            outcome.longest = outcome.longest.max(now.since(since));
            asking = None;
        }
        let usage = server.usage();
        outcome.live = outcome.live.max(usage.live);
        outcome.places = outcome.places.max(usage.places);
        outcome.half_open = outcome.half_open.max(usage.half_open);
    }
    assert!(client.usage().live > 520, "{outcome:?}");
    assert!(standing.iter().all(|&id| server.state(id) == Some(ConnectionState::Established)));
    outcome
}

/// 1,500 requests a second with the longest time-outs filled all 1,024 places for 16 minutes.
#[test]
fn an_honest_client_connects_while_requests_come_from_everywhere() {
    for (rate, sources) in [(1_500, 1), (1_500, 3), (1_500, 60_000), (20_000, 20), (20_000, 60_000)]
    {
        for program in [Program::Accepts, Program::Refuses, Program::Sleeps] {
            let outcome = run(&Flood { rate, sources, program });
            println!("{rate} a second from {sources}, {program:?}: {outcome:?}");
            assert_eq!(outcome.failed, 0, "{rate} {sources} {program:?}: {outcome:?}");
            assert!(outcome.half_open <= 256, "{outcome:?}");
        }
    }
}

/// A way that has the most half-open connections loses the oldest that was not accepted, or the
/// oldest if all were. Of 64 threads that met each other, one lost a connection that had been
/// accepted at that moment and that its peer held for made, and waited for the peer to ask again.
#[test]
fn who_has_the_most_half_open_connections_loses_the_oldest() {
    let mut small = config(1);
    small.half_open = 6;
    let mut world = World::with(vec![config(0), small, config(2)]);
    world.managers[1].listen(SERVICE, 128).unwrap();
    for qpn in 5..11 {
        world.managers[0].connect(1, &request(qpn), b"").unwrap();
    }
    world.carry();
    let greedy = [0; 6].map(|_| world.asked(1));
    world.said();
    world.managers[2].connect(1, &request(5), b"").unwrap();
    world.carry();
    assert_eq!(world.failed(1), (greedy[0], Why::Crowded));
    world.released(1);
    let modest = world.asked(1);
    // Who is not decided about is not told: it repeats its request.
    assert_eq!(world.said(), [(2, Kind::Req)]);
    // Who has the most itself has to wait.
    world.managers[0].connect(1, &request(11), b"").unwrap();
    world.carry();
    world.no_event();
    assert_eq!(world.managers[1].counters().half_open_full, 1);
    let is_confirmed = |from, kind| (from, kind) == (0, Kind::Rtu);
    world.managers[1].accept(greedy[1], &reply(6), b"").unwrap();
    world.managers[2].connect(1, &request(6), b"").unwrap();
    world.carry_but(is_confirmed);
    assert_eq!(world.failed(1), (greedy[2], Why::Crowded));
    world.released(1);
    world.asked(1);
    world.replied(0);
    // Who was accepted is told, for it may believe that the connection stands.
    for (id, qpn) in greedy[3..].iter().zip(7..) {
        world.managers[1].accept(*id, &reply(qpn), b"").unwrap();
    }
    world.managers[2].connect(1, &request(7), b"").unwrap();
    world.carry_but(is_confirmed);
    assert_eq!(world.failed(1), (greedy[1], Why::Crowded));
    (0..3).for_each(|_| {
        world.replied(0);
    });
    let Why::Refused { reason, .. } = world.failed(0).1 else { panic!() };
    assert_eq!(reason, RejectReason::NO_RESOURCES);
    assert_eq!(world.managers[1].state(modest), Some(ConnectionState::ReqReceived));
    assert_eq!(world.managers[1].counters().crowded, 3);
}

/// A peer's request said how long it was to be waited for, up to a minute, and sixteen times that.
#[test]
fn what_a_peer_does_not_confirm_is_given_up_whatever_time_outs_it_names() {
    let mut world = World::pair();
    let (patience, retries) = (CmTimeout::MAX, CmRetries::MAX);
    let terms =
        Request { remote_timeout: patience, local_timeout: patience, retries, ..request(5) };
    world.managers[0].connect(1, &terms, b"").unwrap();
    world.managers[0].connect(1, &Request { qpn: Qpn::new(7), ..terms }, b"").unwrap();
    world.carry();
    let (accepted, undecided) = (world.asked(1), world.asked(1));
    world.managers[1].accept(accepted, &reply(6), b"").unwrap();
    world.pass_but(Duration::from_millis(3990), |from, _| from == 1);
    world.no_event();
    // It was said again meanwhile, though a minute was asked for.
    assert_eq!(world.said().iter().filter(|(_, kind)| *kind == Kind::Rep).count(), 8);
    world.pass_but(millis(20), |from, _| from == 1);
    assert_eq!(world.failed(1).0, accepted);
    world.pass_but(Duration::from_millis(15_970), |from, _| from == 1);
    world.released(1);
    world.no_event();
    world.pass_but(millis(40), |from, _| from == 1);
    assert_eq!(world.failed(1).0, undecided);
}

/// Communication IDs of few bits are drawn again soon. A program that answered a request which had
/// been given up accepted another one, that had the same ID by then.
#[test]
fn who_answers_a_request_that_is_over_answers_no_other() {
    let few = Config { connections: 4, time_waits: 4, tag_bits: 21, ..config(1) };
    let mut world = World::with(vec![config(0), Config { half_open: 2, ..few }]);
    world.managers[1].listen(SERVICE, 2).unwrap();
    let mut earlier = HashMap::new();
    for qpn in (5..10_000).step_by(2) {
        let asking = world.managers[0].connect(1, &request(qpn), b"").unwrap();
        world.carry();
        let asked = world.asked(1);
        if let Some(over) = earlier.insert(asked.comm_id(), asked) {
            let server = &mut world.managers[1];
            assert_eq!((over.comm_id(), server.state(over)), (asked.comm_id(), None));
            let accepted = server.accept(over, &reply(6), b"");
            assert_eq!(accepted.err(), Some(ConnectionError::NoSuchConnection(over)));
            assert_eq!(server.state(asked), Some(ConnectionState::ReqReceived));
            return;
        }
        world.managers[0].cancel(asking).unwrap();
        world.pass(millis(100));
        for manager in &mut world.managers {
            while manager.event().is_some() {}
        }
    }
    panic!("no communication ID was drawn twice");
}
