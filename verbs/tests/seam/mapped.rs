//! Memory of a peer's that is mapped here, and written by queue pairs without a packet.

use doorbell_verbs::work::Write;
use doorbell_verbs::{
    Buf, Cause, FailedWhy, Failure, Mapped, Nic, Registered, RemoteMemory, Rights, SharedMemory,
};

use crate::common::{
    End, MEMORY, Over, Runs, both, brief, buf, bytes, connected, dedicated, nics, run, sleepy,
};

/// Grants memory of one end to the other, which maps the whole of it by naming a part.
async fn mapped(near: &End, far: &End) -> (Registered, RemoteMemory, Mapped) {
    let memory = SharedMemory::new(MEMORY).expect("memory");
    let memory = far.domain.register_shared(memory, Rights::REMOTE).expect("room");
    far.pair.connection().grant(&memory).expect("both are on this machine");
    let whole = memory.remote();
    let part = whole.at(4096, 8).expect("within");
    let mapped = near.pair.connection().map(part).await.expect("it was granted");
    assert_eq!(mapped.len(), MEMORY);
    (memory, whole, mapped)
}

#[test]
fn memory_of_another_nic_or_without_the_right_to_write_is_not_granted() {
    run(Runs::CurrentThread, || async {
        let (here, there) = nics(Over::Shm, &brief());
        let (near, far) = connected(&here, &there).await;
        let shared = |end: &End, rights| {
            let memory = SharedMemory::new(64).expect("memory");
            end.domain.register_shared(memory, rights).expect("room")
        };
        let refused = |end: &End, memory: &Registered| {
            end.pair.connection().grant(memory).expect_err("it may not").to_string()
        };
        let said = refused(&far, &shared(&far, Rights::REMOTE_READ | Rights::REMOTE_ATOMIC));
        assert_eq!(
            said,
            "peers may not write this memory, and who maps it does: register it with REMOTE_WRITE"
        );
        let said = refused(&far, &shared(&near, Rights::REMOTE));
        assert!(said.contains("registered with another NIC than the connection's"), "{said}");
        far.pair.connection().grant(&shared(&far, Rights::REMOTE_WRITE)).expect("it may");
    });
}

fn written_here(nic: &Nic) -> u64 {
    nic.statistics().nic.written_here
}

fn part(memory: &Registered, at: usize, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    memory.read_at(at, &mut bytes).expect("within");
    bytes
}

#[test]
fn mapped_memory_is_written_without_packets_until_it_is_unmapped() {
    for (runs, config) in [
        (Runs::CurrentThread, brief()),
        (Runs::MultiThread, dedicated()),
        (Runs::Nowhere, sleepy()),
    ] {
        run(runs, move || async move {
            let (here, there) = nics(Over::Shm, &config);
            let (near, far) = connected(&here, &there).await;
            let (memory, whole, mapped) = mapped(&near, &far).await;
            let sent = here.statistics().nic.sent;
            for (number, len) in [0, 1, 8, 100, 5000, 100_000].into_iter().enumerate() {
                let to = whole.at(77 * number as u64, len as u64).expect("within");
                near.pair.write(buf(number, len), to).await.expect("it is mapped");
                assert_eq!(part(&memory, 77 * number, len), bytes(number, len));
            }
            let to = whole.at(MEMORY as u64 - 8, 8).expect("within");
            near.pair.write_inline(&7_u64.to_ne_bytes(), to).await.expect("it is mapped");
            assert_eq!(memory.load(MEMORY - 8), Ok(7));
            assert_eq!((written_here(&here), here.statistics().nic.sent), (7, sent));

            drop(mapped);
            near.pair.write(buf(9, 100_000), whole).await.expect("it may be written");
            assert_eq!(part(&memory, 0, 100_000), bytes(9, 100_000));
            assert_eq!(written_here(&here), 7);
            assert!(here.statistics().nic.sent > sent);
        });
    }
}

#[test]
fn a_write_beyond_mapped_memory_is_left_to_the_peer_to_refuse() {
    run(Runs::CurrentThread, || async {
        let (here, there) = nics(Over::Shm, &brief());
        let (near, far) = connected(&here, &there).await;
        let (memory, whole, _mapped) = mapped(&near, &far).await;
        let (address, len) = (whole.address(), whole.len() + 1);
        let beyond = RemoteMemory::new(address, whole.rkey(), len).at(len - 8, 8).expect("within");
        let failed = near.pair.write_inline(&[1; 8], beyond).await.expect_err("one byte too far");
        let refused = FailedWhy::Carried(Failure::Broke(Cause::PeerAccess));
        assert_eq!(failed.why(), refused);
        assert_eq!((memory.load(MEMORY - 8), written_here(&here)), (Ok(0), 0));
    });
}

/// Each message finds what was written before it, and nothing that is written behind the answer.
#[test]
fn writes_are_there_before_the_messages_behind_them() {
    const ROUNDS: usize = 300;
    for (runs, config) in [(Runs::CurrentThread, brief()), (Runs::MultiThread, dedicated())] {
        run(runs, move || async move {
            let (here, there) = nics(Over::Shm, &config);
            let (near, far) = connected(&here, &there).await;
            let (memory, whole, mapped) = mapped(&near, &far).await;
            for end in [&near, &far] {
                end.pair.post_receive(Buf::with_capacity(8)).expect("room");
            }
            let writer = async move {
                let _mapped = mapped;
                for round in 0..ROUNDS {
                    // What is short may be sent, and is there when the read is answered, if nothing
                    // fences it; what is long waits until it may be written here.
                    let len = [8, 3000, 60_000][round % 3];
                    let to = whole.at(0, len as u64).expect("within");
                    let read = near.pair.read(near.memory.slice(..8).expect("within"), whole);
                    let write = Write::new(buf(round, len), to).expect("it fits");
                    let write = if len > 4096 { write } else { write.fenced() };
                    let write = near.pair.perform(write);
                    let number = (round as u64).to_ne_bytes();
                    let tell = near.pair.send_inline(&number);
                    let (read, written, told) = tokio::join!(read, write, tell);
                    read.expect("it may be read");
                    written.expect("it may be written");
                    told.expect("it is received");
                    let before = near.memory.load(0).expect("within").to_ne_bytes();
                    let last = round.checked_sub(1).map_or([0; 8].into(), |last| bytes(last, 8));
                    assert_eq!(before[..], last, "round {round} has read what it has yet to write");
                    let answer = near.pair.receive().await.expect("an answer").data;
                    near.pair.post_receive(answer).expect("room");
                }
                near
            };
            let reader = async move {
                for round in 0..ROUNDS {
                    let told = far.pair.receive().await.expect("a message").data;
                    assert_eq!(*told, (round as u64).to_ne_bytes());
                    far.pair.post_receive(told).expect("room");
                    let len = [8, 3000, 60_000][round % 3];
                    assert_eq!(part(&memory, 0, len), bytes(round, len), "round {round}");
                    far.pair.send_inline(&[]).await.expect("it is received");
                }
                far
            };
            both(writer, reader).await;
        });
    }
}

#[test]
fn granting_fails_on_devices_that_can_not_map() {
    run(Runs::CurrentThread, || async {
        let (here, there) = nics(Over::Udp, &brief());
        let (near, far) = connected(&here, &there).await;
        let memory = SharedMemory::new(64).expect("memory");
        let memory = far.domain.register_shared(memory, Rights::REMOTE).expect("room");
        let refused = far.pair.connection().grant(&memory).expect_err("over UDP");
        assert!(refused.to_string().contains("udp can't grant memory"), "{refused}");
        let to = memory.remote();
        near.pair.write_inline(&[3; 8], to).await.expect("it goes by packets");
        assert_eq!((part(&memory, 0, 8), written_here(&here)), (vec![3; 8], 0));
    });
}
