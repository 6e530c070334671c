//! A network that loses, repeats, damages and reorders packets: real sockets, with faults in front
//! of them.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use doorbell_kit::effort;
use doorbell_transports::udp::Udp;
use doorbell_transports::wrap::{Faults, Faulty};
use doorbell_verbs::{Buf, Config, ConnectError, Incoming, Name, Nic, QueuePair};

use crate::common::{Runs, SERVICE, address, brief, buf, bytes, run, sleepy};

/// Opens a NIC at an address of this machine, whose received packets suffer many faults.
fn faulty(seed: u64, config: &Config) -> Nic {
    let anywhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let faults = Faults {
        loss: 0.03,
        duplication: 0.03,
        corruption: 0.02,
        reordering: 0.05,
        reordering_delay: Duration::from_micros(300),
        duplication_delay: Duration::from_millis(1),
        ..Faults::NONE
    };
    let device = Udp::open(anywhere).expect("a port");
    Nic::builder()
        .config(config.clone())
        .on(Faulty::new(device, faults, seed).expect("it may lose"))
        .expect("a NIC")
}

/// Receives a message, answers it, and waits for the end of the connection.
async fn serves(incoming: Incoming, domain: Arc<doorbell_verbs::Domain>) {
    // Who asks may have given up.
    let Ok(pair) = incoming.accept(&domain).await else { return };
    if let Ok(message) = pair.recv(Buf::with_capacity(3000)).await {
        let _ = pair.send(message.data).await;
    }
    pair.connection().ended().await;
}

/// Carries a message there and back on a new connection, and ends the connection. Returns whether
/// all of that was done, since the network may be too bad for as long as peers are patient.
async fn visits(pair: Result<QueuePair, ConnectError>, number: usize) -> bool {
    let len = [1, 64, 3000][number % 3];
    let pair = match pair {
        Ok(pair) => pair,
        Err(ConnectError::TimedOut { .. }) => return false,
        Err(why) => panic!("{why}"),
    };
    let (sent, answer) =
        tokio::join!(pair.send(buf(number, len)), pair.recv(Buf::with_capacity(len)));
    if let (Ok(_), Ok(answer)) = (&sent, &answer) {
        assert!(answer.data[..] == bytes(number, len), "visit {number}");
    }
    if number.is_multiple_of(2) {
        drop(pair);
    } else {
        pair.connection().disconnect(&[]).await.expect("it is said why it is over");
    }
    sent.is_ok() && answer.is_ok()
}

#[test]
fn thousands_of_connections_are_opened_and_closed_on_a_bad_network() {
    const TASKS: usize = 50;
    let each = effort(40, 200);
    for (seed, config) in [(1, brief()), (2, sleepy())] {
        run(Runs::MultiThread, move || async move {
            let (near, far) = (faulty(seed, &config), faulty(seed + 100, &config));
            let domain = Arc::new(far.domain());
            let mut listener = far.listen(SERVICE).await.expect("nobody else does");
            let serving = tokio::spawn(async move {
                loop {
                    tokio::spawn(serves(
                        listener.accept().await.expect("a request"),
                        domain.clone(),
                    ));
                }
            });
            let (asks, to) = (Arc::new(near.domain()), address(&far));
            let visitors = (0..TASKS).map(|task| {
                let (asks, to) = (asks.clone(), to.clone());
                tokio::spawn(async move {
                    let mut done = 0;
                    for number in 0..each / 2 {
                        let mut pair = asks.connect(Name::at(&*to, SERVICE.0)).await;
                        // The end of an earlier one is still being told, and the peer's number for
                        // this one is that one's.
                        while let Err(ConnectError::Stale { .. }) = pair {
                            pair = asks.connect(Name::at(&*to, SERVICE.0)).await;
                        }
                        done += usize::from(visits(pair, task * each + number).await);
                    }
                    done
                })
            });
            let visitors: Vec<_> = visitors.collect();
            let mut done = 0;
            for visitor in visitors {
                done += visitor.await.expect("no visit fails so");
            }
            // Where eight tries in a row fail, and that is once in millions, nobody has to wait.
            assert!(done + 5 > TASKS * each / 2, "{done} of {}", TASKS * each / 2);
            serving.abort();
            for nic in [near, far] {
                let counted = nic.statistics();
                assert!(counted.nic.malformed > 0 && counted.nic.retransmitted > 0, "{counted:?}");
                while nic.statistics().objects.queue_pairs > 0 {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            }
        });
    }
}
