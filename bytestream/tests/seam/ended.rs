//! Processes that write and end in order at once.

use doorbell_bytestream::Endpoint;
use doorbell_kit::child::{self, Child};
use doorbell_kit::effort;
use doorbell_verbs::Nic;
use tokio::io::AsyncWriteExt;

use crate::common::{Over, Runs, SERVICE, bytes, inline, names, read_all, runtime};

/// How often each process writes.
const TIMES: usize = 8;

async fn endpoint(device: &str) -> Endpoint {
    let nic = Nic::builder().config(inline()).open(device).await.expect("nobody has it");
    Endpoint::on(&nic).await.expect("room")
}

/// Connects to the listener that is named, writes so many bytes several times, ends the stream, and
/// ends: before anybody has looked whether they have come.
fn writes(part: &str) {
    let [device, name, len] = part.split(' ').collect::<Vec<_>>()[..] else { panic!("{part}") };
    let len = len.parse().expect("a number");
    runtime(Runs::CurrentThread).block_on(async {
        let mut stream = endpoint(device).await.connect(name).await.expect("it listens");
        for time in 0..TIMES {
            stream.write_all(&bytes(0, time * len, len)).await.expect("the peer is there");
        }
        stream.shutdown().await.expect("the peer takes it");
    });
}

fn ends(test: &'static str, over: Over) {
    if let Some(part) = child::part() {
        return writes(&part);
    }
    // The wait for the end of the process blocks a thread, and another runs the NIC meanwhile.
    runtime(Runs::MultiThread).block_on(async {
        for round in 0..effort(4, 40) {
            for len in [50, 5_000, 300_000] {
                let [here, there] = names(over);
                let mut listener =
                    endpoint(&here).await.listen(SERVICE).await.expect("nobody else does");
                let part = format!("{there} {} {len}", listener.name());
                let child = Child::start(test, &part, None);
                let stream = listener.accept().await.expect("it asks");
                let read = read_all(stream, 0).await;
                assert_eq!(read, TIMES * len, "of round {round}");
                child.end();
            }
        }
    });
}

#[test]
fn over_shared_memory_what_a_process_has_written_arrives_if_it_ends_behind_a_shutdown() {
    let test =
        "ended::over_shared_memory_what_a_process_has_written_arrives_if_it_ends_behind_a_shutdown";
    ends(test, Over::Shm);
}

#[test]
fn over_udp_what_a_process_has_written_arrives_if_it_ends_behind_a_shutdown() {
    let test = "ended::over_udp_what_a_process_has_written_arrives_if_it_ends_behind_a_shutdown";
    ends(test, Over::Udp);
}
