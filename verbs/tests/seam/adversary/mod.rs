//! Connections over `udp` under attack from elsewhere: the attacker sees none of their packets, but
//! forges packets in both hosts' names, knowing their addresses and ports. Requests that are under
//! way must complete, and new connections must be made meanwhile.

use std::future::Future;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use doorbell_core::wire::{Bth, Deth, Extensions, Headers, Opcode, Psn, Qkey, Qpn};
use doorbell_kit::lab::{self, Lab};
use doorbell_kit::{Bounce, Forger, PATIENCE};
use doorbell_verbs::{
    Buf, Config, ConnectError, Name, Nic, Progress, QueuePair, QueuePairConfig, Region, Registered,
    RemoteMemory, Rights, ServiceId,
};
use tokio::runtime::Builder;

const SERVICE: ServiceId = ServiceId(7);

/// The port of both devices.
const PORT: u16 = 5000;

/// The length of each written message, and how many are written at a time.
const LEN: usize = 32 << 10;
const AT_A_TIME: usize = 4;

/// How many rounds of an attack a connection must survive, of a millisecond or more each. Some of
/// the bugs that these tests found had broken it within ten.
const ROUNDS: usize = 150;
const WRITES: usize = 150;

/// An attacker at both ends of the cable, in the name of the host that is there.
struct Adversary {
    /// For each direction, the forger, and the addresses that it sends from and to.
    sides: [(Forger, SocketAddr, SocketAddr); 2],
}

impl Adversary {
    fn new(lab: &Lab, near: IpAddr, far: IpAddr) -> Self {
        let (near, far) = (SocketAddr::new(near, PORT), SocketAddr::new(far, PORT));
        let to_near = (lab.far.within(Forger::new).expect("root may"), far, near);
        Self { sides: [to_near, (Forger::new().expect("root may"), near, far)] }
    }

    /// Sends valid packets for queue pairs that do not exist and for management, with
    /// identifications counted up each way.
    fn count_up(&self, round: usize) {
        for (forger, from, to) in &self.sides {
            for step in 0..8 {
                let number = (round * 8 + step) as u32;
                let rc = Bth::new(Opcode::RcSendOnly, Qpn::new(number * 7919), Psn::new(number));
                let ud = Bth::new(Opcode::UdSendOnly, Qpn::GSI, Psn::new(number));
                let deth = Deth { qkey: Qkey::GSI, source: Qpn::GSI, reserved: 0 };
                let rc = Headers { bth: rc, extensions: Extensions::None };
                let ud = Headers { bth: ud, extensions: Extensions::Deth(deth) };
                let up = (number as u16).wrapping_mul(9000);
                for (id, headers) in [(up, rc), (up.wrapping_neg(), ud)] {
                    forger.packet((*from, *to), id.max(1), headers, &[0; 256]);
                }
            }
        }
    }

    /// Sends messages of routers, that a packet was too long or has found no host.
    fn bounce(&self, round: usize) {
        let mtu = [552, 1280, 1500][round % 3];
        for (forger, from, to) in &self.sides {
            for bounce in [Bounce::TooLong(mtu), Bounce::PortUnreachable, Bounce::HostUnreachable] {
                forger.bounce(from.ip(), (*to, *from), bounce);
            }
        }
    }

    /// Sends bytes that are no packets, from the peer's socket and from others.
    fn garble(&self, round: usize) {
        for (forger, from, to) in &self.sides {
            for step in 0..16usize {
                let bytes: Vec<_> =
                    (0..round % 200 + step).map(|at| (at * 37 + round) as u8).collect();
                let other = SocketAddr::new(from.ip(), (round * 16 + step) as u16);
                forger.datagram((*from, *to), &bytes);
                forger.datagram((other, *to), &bytes);
            }
        }
    }
}

/// An attack that goes on until it is dropped.
struct Attack<'a> {
    ends: &'a AtomicBool,
}

impl Drop for Attack<'_> {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
    }
}

/// A program's end of a connection, with memory in which the peer has all rights.
struct End {
    pair: QueuePair,
    memory: Registered,
    peer: RemoteMemory,
}

async fn connect(near: &Nic, far: &Nic) -> (End, End) {
    let mut listener = far.listen(SERVICE).await.expect("nobody else listens");
    let domains = [near.domain(), far.domain()];
    let [here, there] = domains.each_ref().map(|domain| {
        let region = Region::new(LEN * AT_A_TIME);
        domain.register(region, Rights::LOCAL_WRITE | Rights::REMOTE).expect("room")
    });
    let asks = async {
        let pair = domains[0].queue_pair(&QueuePairConfig::default()).expect("room");
        pair.connect(Name::at(&*far.address().to_string(), SERVICE.0), &[])
            .await
            .expect("the peer listens")
            .0
    };
    let takes = async {
        let pair = domains[1].queue_pair(&QueuePairConfig::default()).expect("room");
        pair.accept(listener.accept().await.expect("a request"), &[])
            .await
            .expect("the peer waits")
            .0
    };
    let (asked, taken) = tokio::join!(asks, takes);
    let (to_here, to_there) = (here.remote(), there.remote());
    (
        End { pair: asked, memory: here, peer: to_there },
        End { pair: taken, memory: there, peer: to_here },
    )
}

/// Writes messages, several at a time, and reads one back.
async fn stream(end: &End, round: usize) {
    let message = |at: usize| Buf::from(vec![(round * 3 + at) as u8; LEN]);
    let place = |at: usize| end.peer.at((at * LEN) as u64, LEN as u64).expect("within");
    let write = |at: usize| end.pair.write(message(at), place(at));
    let all = tokio::join!(write(0), write(1), write(2), write(3));
    for written in [all.0, all.1, all.2, all.3] {
        written.unwrap_or_else(|why| panic!("write {round}: {why}"));
    }
    let read = end.pair.read(Buf::with_capacity(LEN), place(round % AT_A_TIME)).await;
    let read = read.unwrap_or_else(|why| panic!("read {round}: {why}"));
    assert_eq!(read[..], message(round % AT_A_TIME)[..], "read {round}");
}

/// Runs something that may take only as long as something does that does not hang.
async fn bounded<F: Future>(what: &str, future: F) -> F::Output {
    let done = tokio::time::timeout(PATIENCE, future).await;
    done.unwrap_or_else(|_| panic!("{what} takes longer than {PATIENCE:?}"))
}

/// Runs traffic between two NICs at the ends of a cable while an attack goes on.
fn survives(attack: fn(&Adversary, usize)) {
    lab::test(|lab| {
        let cable = lab.cable("a0", "b0", 9000).expect("a cable");
        let ends: [(IpAddr, IpAddr); 2] = [
            (cable.near.ipv4.into(), cable.far.ipv4.into()),
            (cable.near.ipv6.into(), cable.far.ipv6.into()),
        ];
        for (near, far) in ends {
            let adversary = Adversary::new(lab, near, far);
            let (rounds, ends) = (AtomicUsize::new(0), AtomicBool::new(false));
            thread::scope(|scope| {
                let attack = scope.spawn(|| {
                    while !ends.load(Ordering::Relaxed) {
                        attack(&adversary, rounds.fetch_add(1, Ordering::Relaxed));
                        thread::sleep(Duration::from_millis(1));
                    }
                });
                let _attack = Attack { ends: &ends };
                let runtime = Builder::new_current_thread().enable_all().build();
                runtime.expect("a runtime").block_on(live(lab, [near, far], &rounds));
                assert!(!attack.is_finished(), "it has attacked all the while");
            });
        }
    });
}

async fn live(lab: &Lab, [near, far]: [IpAddr; 2], rounds: &AtomicUsize) {
    let open = |ip: IpAddr, config: Config| {
        Nic::builder()
            .config(config)
            .open_blocking(&format!("udp:{}", SocketAddr::new(ip, PORT)))
            .expect("nobody has it")
    };
    let near = open(near, Config::default());
    // Its thread is in the far namespace, as it must be to open sockets there.
    let progress = Progress::Dedicated { core: None };
    let far = lab.far.within(|| open(far, Config { progress, ..Config::default() }));
    let (here, there) = bounded("connecting", connect(&near, &far)).await;
    let (begun, mut round) = (rounds.load(Ordering::Relaxed), 0);
    while round < WRITES || rounds.load(Ordering::Relaxed) < begun + ROUNDS {
        let both = async { tokio::join!(stream(&here, round), stream(&there, round)) };
        bounded("a write", both).await;
        if round.is_multiple_of(50) {
            bounded("another connection", connect(&near, &far)).await;
        }
        round += 1;
    }
    drop((here.memory, there.memory));
}

#[test]
fn a_connection_survives_packets_with_identifications_that_are_counted_up_each_way() {
    survives(Adversary::count_up);
}

#[test]
fn a_connection_survives_messages_that_packets_are_too_long_or_find_nobody() {
    survives(Adversary::bounce);
}

#[test]
fn a_connection_survives_bytes_that_are_no_packets() {
    survives(Adversary::garble);
}

/// Regression test for a bug: the connect took 4 s, and the next one as long, since a socket was
/// connected to port 0 and took other peers' packets.
#[test]
fn a_connection_to_port_0_is_refused_at_once_and_the_next_one_is_made() {
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let open = || Nic::builder().open_blocking("udp:127.0.0.1:0").expect("a port is free");
        let (near, far) = (open(), open());
        for _ in 0..40 {
            let pair = near.domain().queue_pair(&QueuePairConfig::default()).expect("room");
            let refused = pair.connect(Name::at("udp:127.0.0.1:0", SERVICE.0), &[]).await;
            let why = refused.map(drop).expect_err("it is no port");
            assert!(matches!(why, ConnectError::Reach(_)), "{why:?}");
            let text = why.to_string();
            assert!(text.contains("udp:127.0.0.1:0") && text.contains("port 0"), "{text}");
        }
        bounded("connecting", connect(&near, &far)).await;
    });
}
