//! Clients that are killed, and come back at the same address.

use std::time::Duration;

use doorbell_core::encap::Version;
use doorbell_simulation::{Ether, LinkConfig, Network, passes, passing};
use doorbell_verbs::{Buf, Config, Domain, Name, Nic, QueuePair};

use crate::common::{Runs, SERVICE, address, run, sleepy};

/// Accepts every peer, and keeps each connection until it ends.
async fn serve(mut listener: doorbell_verbs::Listener, domain: Domain) {
    loop {
        let (incoming, domain) = (listener.accept().await.expect("a request"), domain.clone());
        tokio::spawn(async move {
            let Ok(pair) = incoming.accept(&domain).await else { return };
            let pair: QueuePair = pair;
            while pair.recv(Buf::with_capacity(8)).await.is_ok() {}
            pair.connection().ended().await;
        });
    }
}

/// Regression test for a bug: the server kept the queue pairs of 48 of 50 clients for as long as
/// the last of them lived, since its packets were taken for a sign of life of all; and two were
/// refused as stale.
#[test]
fn a_server_drops_the_connections_of_killed_clients_soon_after_they_come_back() {
    run(Runs::CurrentThread, || async {
        let mut network = Network::new(30);
        let [here, there] = [network.station(), network.station()];
        let cable = network.link(here, there, LinkConfig { mtu: 4200, ..LinkConfig::default() });
        let ether = Ether::new(network, Version::V2Ipv6, false);
        let open = |station, seed| {
            let config = Config { seed: Some(seed), ..sleepy() };
            Nic::builder()
                .config(config)
                .on(ether.station(station).expect("descriptors"))
                .expect("a NIC")
        };
        let server = open(here, 1);
        let listener = server.listen(SERVICE).await.expect("nobody else does");
        let serves = tokio::spawn(serve(listener, server.domain()));
        let to = address(&server);
        let mut last = None;
        for seed in 0..50 {
            // As a process that is killed: nobody hears of its end.
            if let Some((pair, nic)) = last.take() {
                ether.with(|network| network.cut(cable));
                drop::<(QueuePair, Nic)>((pair, nic));
                passing(&ether, passes(&ether, Duration::from_millis(1))).await;
                ether.with(|network| network.heal(cable));
            }
            let nic = open(there, 1000 + seed);
            let asked = nic.domain();
            let connects = async {
                let pair: QueuePair =
                    asked.connect(Name::at(&*to, SERVICE.0)).await.expect("nothing is stale");
                pair.send_inline(b"hello").await.expect("it stands");
                pair
            };
            let pair = passing(&ether, connects).await;
            last = Some((pair, nic));
        }
        // What the last one says goes on meanwhile.
        let (pair, _nic) = last.expect("fifty of them");
        let before = ether.now();
        let left = async {
            while server.statistics().objects.queue_pairs > 1 {
                pair.send_inline(b"hello").await.expect("it stands");
                passes(&ether, Duration::from_millis(10)).await;
            }
        };
        passing(&ether, left).await;
        let took = ether.now() - before;
        // Until they are missed, and as long as their numbers rest.
        let busy = sleepy().keep_alive.busy;
        assert!(took < busy + Duration::from_secs(2), "{took:?}, where peers have {busy:?}");
        serves.abort();
    });
}
