//! Everybody floods everybody.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use doorbell_am::{
    Bundle, BundleConfig, CallError, Endpoint, EndpointConfig, Flow, Handlers, Policy, ReplyId,
    RequestId, Tag, Undeliverable,
};
use doorbell_kit::{PATIENCE, lab};
use doorbell_simulation::Faults;

use crate::promises::devices::Devices;

/// From whom, and which of its requests to this endpoint it is.
type Sent = (u64, u64);

const NOTE: RequestId<Sent> = RequestId::new(0, "note");
const ASK: RequestId<Sent> = RequestId::new(1, "ask");
const LATER: RequestId<Sent> = RequestId::new(2, "later");
const PANIC: RequestId<Sent> = RequestId::new(3, "panic");
const SLOW: RequestId<Sent> = RequestId::new(4, "slow");
const NOBODYS: RequestId<Sent> = RequestId::new(5, "nobody's");
const TOLD: ReplyId<Sent> = ReplyId::new(0, "told");

/// How it is flooded.
#[derive(Clone, Copy)]
struct Flood {
    seed: u64,
    endpoints: usize,
    credits: usize,
    /// The most receives of each.
    receives: usize,
    /// How many requests each sends.
    requests: u64,
    policy: Policy,
    flow: Flow,
}

/// How many requests came, and the number of the last by each way.
type Came = (u64, [Option<u64>; 3]);

/// The messages that an endpoint has seen of each other endpoint.
#[derive(Default)]
struct Seen {
    came: Mutex<HashMap<u64, Came>>,
    /// Replies that ran their handler, and requests that came back.
    replies: AtomicU64,
    returned: AtomicU64,
}

impl Seen {
    /// Counts a request, and checks that it came once and in the order of its pair, or of its size
    /// class if that has a connection of its own.
    fn count(&self, policy: Policy, (from, number): Sent, len: usize) {
        let mut came = self.came.lock().unwrap_or_else(|held| held.into_inner());
        let (count, last) = came.entry(from).or_default();
        let way = match (policy, len) {
            (Policy::PerSize, 65..=512) => 1,
            (Policy::PerSize, 513..) => 2,
            _ => 0,
        };
        assert!(last[way] < Some(number), "{number} behind {:?} of endpoint {from}", last[way]);
        assert!(policy == Policy::PerSize || number == *count, "{number} of {from}, not {count}");
        (last[way], *count) = (Some(number), *count + 1);
    }
}

/// Makes the payload of a request.
fn payload(sent: Sent, len: usize) -> Vec<u8> {
    (0..len).map(|at| (at as u64 * 7 + sent.0 * 31 + sent.1) as u8).collect()
}

fn handlers(seen: &Arc<Seen>, policy: Policy) -> Handlers {
    let each = || seen.clone();
    let (noted, asked, later, panicked, slow) = (each(), each(), each(), each(), each());
    let (replied, returned) = (each(), each());
    Handlers::new()
        .request(NOTE, move |request, sent| {
            assert!(request.payload() == payload(sent, request.payload().len()));
            noted.count(policy, sent, request.payload().len());
        })
        .request(ASK, move |request, sent| {
            asked.count(policy, sent, request.payload().len());
            let back = request.payload().to_vec();
            request.reply_with(TOLD, sent, &back).expect("as long as what came");
        })
        .request(PANIC, move |request, sent| {
            panicked.count(policy, sent, request.payload().len());
            std::panic::resume_unwind(Box::new("as it should"));
        })
        .request(SLOW, move |request, sent| {
            slow.count(policy, sent, request.payload().len());
            std::thread::sleep(Duration::from_micros(200));
            request.reply(TOLD, sent);
        })
        .request_async(LATER, move |request, sent| {
            later.count(policy, sent, request.payload().len());
            async move {
                for _ in 0..sent.1 % 5 {
                    tokio::task::yield_now().await;
                }
                let back = request.payload().to_vec();
                request.reply_with(TOLD, sent, &back).expect("as long as what came");
            }
        })
        .reply(TOLD, move |reply, sent| {
            assert!(reply.payload() == payload(sent, reply.payload().len()));
            replied.replies.fetch_add(1, Ordering::Relaxed);
        })
        .returned(move |back| match back.why() {
            Undeliverable::Panicked | Undeliverable::NoHandler => {
                returned.returned.fetch_add(1, Ordering::Relaxed);
            }
            // At the end: what was handled last, but not told of.
            why => assert_eq!(why, Undeliverable::PeerGone),
        })
}

/// A generator, so that the same seed gives the same requests.
struct Draw(u64);

impl Draw {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// The counts of what an endpoint has sent.
#[derive(Default)]
struct Model {
    /// How many to each that are handled.
    handled: Vec<u64>,
    replies: u64,
    returned: u64,
}

/// Sends requests of all kinds to all others, some of them awaited, and says what was sent.
async fn sends(flood: Flood, own: usize, endpoint: Endpoint) -> Model {
    let mut draw = Draw(flood.seed.wrapping_mul(0x9E37_79B9) ^ own as u64);
    let mut model = Model { handled: vec![0; flood.endpoints], ..Model::default() };
    for _ in 0..flood.requests {
        let to = (own + 1 + draw.below(flood.endpoints as u64 - 1) as usize) % flood.endpoints;
        let peer = endpoint.peer(to).expect("all are mapped");
        let sent = (own as u64, model.handled[to]);
        let len = [0, 0, 16, 100, 1500, 4096][draw.below(6) as usize];
        let bytes = payload(sent, len);
        let kind = draw.below(64);
        model.handled[to] += u64::from(kind != 63);
        let awaited = draw.below(4) == 0;
        let id = match kind {
            0..24 => NOTE,
            24..44 => ASK,
            44..60 => LATER,
            60 => SLOW,
            61..63 => PANIC,
            _ => NOBODYS,
        };
        let bytes = if id.index() == SLOW.index() { &[][..] } else { &bytes };
        if !awaited {
            peer.request_with(id, sent, bytes).await.expect("it is there");
            match kind {
                24..61 => model.replies += 1,
                61.. => model.returned += 1,
                _ => {}
            }
            continue;
        }
        let answer = peer.call_with(id, sent, bytes).await;
        match (kind, answer) {
            (24..61, Ok(reply)) => {
                assert_eq!(reply.arguments(TOLD), Ok(sent));
                assert!(reply.payload() == payload(sent, reply.payload().len()));
            }
            (0..24, Err(CallError::Undeliverable { why: Undeliverable::Unanswered, .. }))
            | (61..63, Err(CallError::Undeliverable { why: Undeliverable::Panicked, .. }))
            | (63, Err(CallError::Undeliverable { why: Undeliverable::NoHandler, .. })) => {}
            (kind, other) => panic!("a request of kind {kind} is answered {other:?}"),
        }
    }
    model
}

async fn flooded(devices: &Devices, flood: Flood) {
    let Flood { endpoints: count, credits, receives, policy, flow: by, .. } = flood;
    let own = EndpointConfig::default();
    let config = EndpointConfig {
        credits,
        first_credits: credits,
        receives,
        policy,
        flow: by,
        admits: Tag(5).into(),
        ..own
    };
    let bundles: Vec<_> = devices
        .nics
        .iter()
        .map(|nic| Bundle::new(nic, &BundleConfig::default()).expect("room"))
        .collect();
    let seen: Vec<Arc<Seen>> = (0..count).map(|_| Arc::default()).collect();
    let mut endpoints = Vec::new();
    for (number, seen) in seen.iter().enumerate() {
        let bundle = &bundles[number % bundles.len()];
        let endpoint = Endpoint::builder()
            .config(config.clone())
            .on_bundle(bundle, handlers(seen, policy))
            .await
            .expect("room");
        endpoints.push(endpoint);
    }
    for (own, endpoint) in endpoints.iter().enumerate() {
        for (to, other) in endpoints.iter().enumerate().filter(|(to, _)| *to != own) {
            endpoint.map(to, other.name(), Tag(5)).await.unwrap_or_else(|why| panic!("{why}"));
        }
    }
    let tasks: Vec<_> = endpoints
        .iter()
        .enumerate()
        .map(|(own, endpoint)| tokio::spawn(sends(flood, own, endpoint.clone())))
        .collect();
    let mut models = Vec::new();
    for task in tasks {
        models.push(task.await.expect("it does not fail"));
    }
    // What was not awaited is done when all credits are back.
    let settled = || {
        models.iter().zip(&seen).enumerate().all(|(own, (model, saw))| {
            let came = saw.came.lock().unwrap_or_else(|held| held.into_inner());
            let from = |other: usize| models[other].handled[own];
            let came = |other: usize| came.get(&(other as u64)).map_or(0, |(count, _)| *count);
            (0..count).all(|other| came(other) == from(other))
                && saw.replies.load(Ordering::Relaxed) == model.replies
                && saw.returned.load(Ordering::Relaxed) == model.returned
        })
    };
    while !settled() {
        tokio::task::yield_now().await;
    }
    for endpoint in &endpoints {
        let allowed = match policy {
            // A connection for each size from either side, with fewer credits for what is longer.
            Policy::PerSize => {
                let credits = credits + credits.div_ceil(2) + credits.div_ceil(4);
                4 * credits * (count - 1) + 3
            }
            _ => receives.min(2 * credits * (count - 1) + 1),
        };
        let most = endpoint.most_receives();
        assert!(most <= allowed, "{most} receives, and {allowed} allowed");
    }
    for bundle in &bundles {
        let counted = bundle.statistics();
        assert_eq!((counted.malformed, counted.late), (0, 0));
    }
    if by == Flow::Credits {
        assert_eq!(devices.without_buffer(), 0);
    }
}

#[track_caller]
fn play(threads: usize, devices: impl Fn() -> Devices, flood: Flood) {
    let mut builder = match threads {
        1 => tokio::runtime::Builder::new_current_thread(),
        _ => tokio::runtime::Builder::new_multi_thread(),
    };
    let runtime = builder.worker_threads(threads).enable_all().build().expect("a runtime");
    let bounded = async {
        let devices = devices();
        let run = devices.run(flooded(&devices, flood));
        tokio::time::timeout(PATIENCE, run).await
    };
    assert!(runtime.block_on(bounded).is_ok(), "it hangs: seed {}", flood.seed);
}

const FLOOD: Flood = Flood {
    seed: 1,
    endpoints: 6,
    credits: 8,
    receives: 4096,
    requests: 2000,
    policy: Policy::Together,
    flow: Flow::Credits,
};

#[test]
fn in_shared_memory() {
    for credits in [1, 3, 8, 64] {
        play(1, || Devices::shm(3), Flood { credits, ..FLOOD });
    }
    play(2, || Devices::shm(2), FLOOD);
}

#[test]
fn by_udp() {
    for credits in [1, 8] {
        play(1, || Devices::udp(3), Flood { credits, ..FLOOD });
    }
    play(2, || Devices::udp(2), FLOOD);
}

#[test]
fn by_raw_ethernet() {
    lab::test(|lab| {
        lab.loopback("a0", "b0", 9000).expect("a cable");
        for device in ["packet", "packet-v2"] {
            play(1, || Devices::packet(device), Flood { endpoints: 2, ..FLOOD });
        }
    });
}

#[test]
fn between_32_endpoints() {
    let flood = Flood { endpoints: 32, requests: 200, ..FLOOD };
    play(1, || Devices::shm(4), flood);
}

/// Also beside some who have company in their sends.
#[test]
fn with_each_message_in_a_send_of_its_own() {
    let flood = Flood { requests: 400, policy: Policy::Apart, ..FLOOD };
    play(1, || Devices::shm(3), flood);
    play(1, || Devices::udp(3), Flood { receives: 16, ..flood });
    let faults = Faults { loss: 0.01, ..Faults::NONE };
    play(1, || Devices::ether(6, 1, faults, false), flood);
}

#[test]
fn with_connections_for_each_size() {
    let flood = Flood { requests: 400, policy: Policy::PerSize, ..FLOOD };
    play(1, || Devices::shm(3), flood);
    play(1, || Devices::udp(3), Flood { credits: 1, ..flood });
    let faults = Faults { loss: 0.01, ..Faults::NONE };
    play(1, || Devices::ether(6, 1, faults, false), flood);
}

/// Four receives for each peer, where it may have 16 requests under way and as many answers.
#[test]
fn with_nothing_but_the_nics_own_credits() {
    let flow = Flow::Nic { receives: 4 };
    let flood = Flood { requests: 200, credits: 16, flow, ..FLOOD };
    play(1, || Devices::shm(3), flood);
    play(1, || Devices::udp(3), flood);
    let faults = Faults { loss: 0.01, ..Faults::NONE };
    play(1, || Devices::ether(6, 1, faults, false), flood);
}

/// Where there is not enough for all to have all their credits, idle peers hold one, and others
/// more as they send.
#[test]
fn with_fewer_receives_than_credits() {
    for receives in [16, 40, 100] {
        let flood = Flood { endpoints: 10, receives, requests: 400, ..FLOOD };
        play(1, || Devices::shm(2), flood);
        play(2, || Devices::udp(2), flood);
    }
    let faults = Faults { loss: 0.01, ..Faults::NONE };
    for seed in 1..=4 {
        let flood = Flood { seed, receives: 16, requests: 200, ..FLOOD };
        play(1, || Devices::ether(6, seed, faults, false), flood);
    }
}

#[test]
fn on_a_network_that_loses_repeats_and_reorders() {
    let faults = Faults { loss: 0.01, duplication: 0.01, reordering: 0.01, ..Faults::NONE };
    for seed in 1..=12 {
        let credits = [8, 1, 2, 32][seed as usize % 4];
        let flood = Flood { seed, credits, requests: 200, ..FLOOD };
        play(1, || Devices::ether(6, seed, faults, false), flood);
    }
}

#[test]
fn on_a_network_that_loses_nothing() {
    for seed in 1..=2 {
        play(
            1,
            || Devices::ether(6, seed, Faults::NONE, true),
            Flood { seed, requests: 200, ..FLOOD },
        );
    }
}
