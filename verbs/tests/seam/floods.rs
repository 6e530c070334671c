//! Forged requests from as many addresses as there are on the loopback interface.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use doorbell_core::cm::{Config as ManagerConfig, ConnectionManager, Request};
use doorbell_core::encap::{Outer, Path, PathId, alone};
use doorbell_core::nic::Seed;
use doorbell_core::wire::cm::{CmRetries, CmTimeout, Mad};
use doorbell_core::wire::{
    Bth, CaGuid, Deth, Extensions, Gid, Headers, IpId, Mac, Opcode, Pkey, Psn, Qkey, Qpn,
};
use doorbell_verbs::{Address, Buf, Config, Name, Nic, QueuePair};

use crate::common::{Runs, SERVICE, address, brief, run};

/// Builds a request with the longest time-outs that there are.
fn request() -> [u8; Mad::LEN] {
    let config = ManagerConfig::new(CaGuid(1));
    let mut stranger = ConnectionManager::new(config, Seed::from_number(1)).expect("it can be");
    let longest = CmTimeout::MAX;
    let (gid, qpn) = (Gid::default(), Qpn::new(0x1234));
    let request = Request {
        remote_timeout: longest,
        local_timeout: longest,
        retries: CmRetries::MAX,
        ..Request::new(SERVICE, qpn, Psn::new(1), gid, gid)
    };
    stranger.connect((), &request, b"").expect("there is room");
    stranger.transmit().expect("it asks").bytes
}

/// Builds the payload by which a UDP socket sends a management datagram to a NIC.
fn datagram(from: SocketAddr, to: SocketAddr, bytes: &[u8; Mad::LEN]) -> Vec<u8> {
    let outer = Outer::v2((Mac([0; 6]), Mac([0; 6])), from, to).expect("IPv4 both");
    let bth = Bth::new(Opcode::UdSendOnly, Qpn::GSI, Psn::new(0)).with_pkey(Pkey::DEFAULT);
    let deth = Deth { qkey: Qkey::GSI, source: Qpn::GSI, reserved: 0 };
    let headers = Headers { bth, extensions: Extensions::Deth(deth) };
    let mut frame = [0; 512];
    let path = Path::new(PathId(0), outer);
    let len = alone(&path, &mut frame, IpId(0), headers, &bytes[..]).expect("it fits");
    frame[outer.len()..len].to_vec()
}

/// Sends 1,500 requests a second until it is told to stop.
fn flood(to: SocketAddr, sent: &AtomicU64, stops: &AtomicBool) {
    let sources: Vec<UdpSocket> = (0..250)
        .map(|n| {
            UdpSocket::bind(SocketAddr::from(([127, 9, 1, n], to.port())))
                .expect("nobody has the address")
        })
        .collect();
    let (mut request, began) = (request(), Instant::now());
    while !stops.load(Ordering::Relaxed) {
        let due = (began.elapsed().as_secs_f64() * 1500.0) as u64;
        while sent.load(Ordering::Relaxed) < due {
            let number = sent.fetch_add(1, Ordering::Relaxed);
            // Another GUID each time.
            request[24 + 16..24 + 24].copy_from_slice(&(number + 2).to_be_bytes());
            let source = &sources[number as usize % sources.len()];
            let from = source.local_addr().expect("it is bound");
            source.send_to(&datagram(from, to, &request), to).expect("loopback takes it");
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Regression test for a bug: 1,500 requests filled all 1,024 places for 16 minutes, and no other
/// peer was accepted.
#[test]
fn over_udp_an_honest_client_connects_during_a_flood_of_forged_requests() {
    run(Runs::MultiThread, || async {
        let config = Config { connect_timeout: Duration::from_secs(2), ..brief() };
        let server =
            Nic::builder().config(config).open("udp:127.0.0.1:0").await.expect("a free port");
        let objects = server.statistics().objects;
        let domain = server.domain();
        let mut listener = server.listen(SERVICE).await.expect("nobody else does");
        let serves = tokio::spawn(async move {
            loop {
                let (incoming, domain) =
                    (listener.accept().await.expect("a request"), domain.clone());
                tokio::spawn(async move {
                    let Ok(pair) = incoming.accept(&domain).await else { return };
                    let pair: QueuePair = pair;
                    let _ = pair.recv(Buf::with_capacity(8)).await;
                    pair.connection().ended().await;
                });
            }
        });
        let Address::Udp(to) = *server.address() else { panic!("it is udp's") };
        let (sent, stops) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let floods = {
            let (sent, stops) = (sent.clone(), stops.clone());
            std::thread::spawn(move || flood(to, &sent, &stops))
        };
        // Until what is held has reached its height.
        while sent.load(Ordering::Relaxed) < 3000 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let client =
            Nic::builder().config(brief()).open("udp:127.0.0.2:0").await.expect("a free port");
        let (asks, text) = (client.domain(), address(&server));
        let (mut longest, mut most) = (Duration::ZERO, 0);
        for _ in 0..50 {
            let began = Instant::now();
            let pair = asks.connect(Name::at(&*text, SERVICE.0)).await.expect("it is taken up");
            longest = longest.max(began.elapsed());
            pair.send_inline(b"hello").await.expect("it stands");
            most = most.max(server.statistics().objects.queue_pairs);
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let counted = server.statistics().connections;
        println!(
            "{} forged; the longest of 50 connects took {longest:?}; at most {most} queue pairs; \
             {counted:?}",
            sent.load(Ordering::Relaxed)
        );
        assert!(counted.received > 2000, "the flood came: {counted:?}");
        // As many as may be half made, and those of the client.
        assert!(most < 1024 + 100, "{most} queue pairs");
        stops.store(true, Ordering::Relaxed);
        floods.join().expect("it sends");
        drop(client);
        serves.abort();
        // Nobody confirms what was forged: it is over in the configured time.
        while server.statistics().objects != objects {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
}
