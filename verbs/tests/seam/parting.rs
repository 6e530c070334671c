//! Requests whose peer leaves as soon as it has what they brought.

use doorbell_verbs::{
    Buf, Imm, Name, Nic, QueuePairConfig, Region, RemoteMemory, Rights, ServiceId,
};

const SERVICE: ServiceId = ServiceId(7);

/// Regression test for a bug: the peer's own end was told before what the peer had received, and
/// the write failed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_succeeds_that_the_peer_has_received_before_it_leaves() {
    for round in 0..200 {
        let name = |end: &str| format!("shm:parting/{}/{round}/{end}", std::process::id());
        let server = Nic::open(&name("server")).await.unwrap();
        let address = server.address().to_string();
        let mut listener = server.listen(SERVICE).await.unwrap();
        let served = tokio::spawn(async move {
            let domain = server.domain();
            let memory = domain.register(Region::new(64), Rights::REMOTE).unwrap();
            let pair = domain.queue_pair(&QueuePairConfig::default()).unwrap();
            pair.post_receive(Buf::default()).unwrap();
            let key = memory.remote().to_bytes();
            let (pair, _) =
                pair.accept(listener.accept().await.expect("a request"), &key).await.unwrap();
            let told = pair.receive().await.unwrap();
            assert_eq!((told.len, told.imm(), told.is_write), (5, Some(Imm(round)), true));
        });
        let client = Nic::open(&name("client")).await.unwrap();
        let pair = client.domain().queue_pair(&QueuePairConfig::default()).unwrap();
        let (pair, key) = pair.connect(Name::at(&*address, SERVICE.0), &[]).await.unwrap();
        let memory = RemoteMemory::from_prefix(&key).unwrap();
        let written =
            pair.write_imm(Buf::from(&b"hello"[..]), memory.at(0, 5).unwrap(), Imm(round));
        assert_eq!(written.await.map(|buf| buf.len()).map_err(|why| why.to_string()), Ok(5));
        served.await.unwrap();
    }
}
