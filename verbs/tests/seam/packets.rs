//! The size of packets that two ends agree on when they connect.

use doorbell_core::wire::PathMtu;
use doorbell_transports::shm::Shm;
use doorbell_verbs::{Buf, Name, Nic};

use crate::common::{Over, Runs, SERVICE, address, brief, buf, bytes, names, run, sleepy};
use crate::watched::Watched;

/// Regression test for a bug: both ends said how to set the MTU of an interface, and did not
/// connect, even where one was the loopback interface and the MTU could not be set.
#[test]
fn ends_whose_devices_take_packets_of_other_sizes_connect_with_those_that_both_take() {
    for (config, most) in [brief(), sleepy()]
        .iter()
        .flat_map(|config| PathMtu::ALL.into_iter().map(move |most| (config.clone(), most)))
    {
        run(Runs::CurrentThread, move || async move {
            let [large, small] = names(Over::Shm);
            let large = Nic::builder()
                .config(config.clone())
                .open(&large)
                .await
                .expect("nobody else has it");
            let name = small.strip_prefix("shm:").expect("it begins so");
            let device = Watched::taking(Shm::join(name).expect("nobody else has it"), most);
            let small = Nic::builder().config(config).on(device).expect("a NIC");
            for (near, far) in [(&large, &small), (&small, &large)] {
                let (asks, takes) = (near.domain(), far.domain());
                let mut listener = far.listen(SERVICE).await.expect("nobody else does");
                let accepted =
                    async { listener.accept().await.expect("a request").accept(&takes).await };
                let to = address(far);
                let (one, other) =
                    tokio::try_join!(asks.connect(Name::at(&*to, SERVICE.0)), accepted)
                        .expect("both take the smaller ones");
                for (from, to) in [(&one, &other), (&other, &one)] {
                    // Of many packets, the last of them short.
                    let len = 20_001;
                    let received = to.recv(Buf::with_capacity(len));
                    let (sent, received) = tokio::join!(from.send(buf(1, len)), received);
                    sent.expect("it is received");
                    assert_eq!(received.expect("it is sent").data[..], bytes(1, len)[..]);
                }
            }
        });
    }
}
