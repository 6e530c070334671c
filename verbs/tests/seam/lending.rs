//! Immutable bytes that are lent to peers to be read.

use bytes::Bytes;
use doorbell_verbs::{Buf, Cause, FailedWhy, Failure, RemoteMemory};

use crate::common::{End, Over, Runs, brief, bytes, connected, nics, run};
use crate::errors::says;

/// Bytes that begin and end within a word, and where a program lends them.
fn unaligned(len: usize) -> Bytes {
    Bytes::from(bytes(3, len + 5)).slice(5..)
}

async fn read(end: &End, from: RemoteMemory) -> Vec<u8> {
    let into = Buf::with_capacity(from.len() as usize);
    end.pair.read(into, from).await.expect("it may be read").into()
}

/// Regression test for a bug: lent bytes were read as atomic words, which they are not, and so all
/// but whole words had to be sent by other ways.
#[test]
fn peers_read_every_byte_that_is_lent_until_it_is_taken_back() {
    for over in [Over::Shm, Over::Udp] {
        run(Runs::CurrentThread, move || async move {
            let (here, there) = nics(over, &brief());
            let (near, far) = connected(&here, &there).await;
            for len in [1, 7, 8, 100, 5000, 100_001] {
                let all = unaligned(len);
                let lent = far.domain.lend(all.clone()).expect("room");
                assert_eq!(lent.remote().len(), len as u64);
                assert_eq!(read(&near, lent.remote()).await, all, "{over:?}, {len} bytes");
                let (at, part) = (len / 3, len.div_ceil(5));
                let part_of = lent.remote().at(at as u64, part as u64).expect("within");
                assert_eq!(read(&near, part_of).await, all[at..at + part], "{over:?}, {len} bytes");
                drop(lent);
                while !all.is_unique() {
                    tokio::task::yield_now().await;
                }
            }
        });
    }
}

/// Whatever a peer does with the key, it changes nothing, and it breaks no connection but its own.
#[test]
fn bytes_that_are_lent_are_not_changed_by_any_request() {
    run(Runs::CurrentThread, || async {
        let (here, there) = nics(Over::Shm, &brief());
        let all = unaligned(256);
        let copy = all.to_vec();
        for number in 0..5 {
            let (near, far) = connected(&here, &there).await;
            let lent = far.domain.lend(all.clone()).expect("room");
            let word = RemoteMemory::new(
                doorbell_verbs::RemoteAddr(lent.remote().address().0.next_multiple_of(8)),
                lent.remote().rkey(),
                8,
            );
            let failed = match number {
                0 => near.pair.write_inline(&[1; 8], word).await.err(),
                1 => near.pair.fetch_add(word, 1).await.err(),
                2 => near.pair.compare_swap(word, 0, 1).await.err(),
                3 => {
                    let beyond = RemoteMemory::new(word.address(), word.rkey(), 257);
                    near.pair.read(Buf::with_capacity(257), beyond).await.err()
                }
                _ => {
                    drop(lent);
                    near.pair.read(Buf::with_capacity(8), word).await.err()
                }
            };
            let failed = failed.expect("it may not");
            let refused = FailedWhy::Carried(Failure::Broke(Cause::PeerAccess));
            assert_eq!(failed.why(), refused, "request {number}");
            let (len, key) = (if number == 3 { 257 } else { 8 }, word.rkey().0);
            says(&failed, &[&format!("it was asked for {len} bytes at "), &format!("{key:#010x}")]);
            assert_eq!(all, copy);
        }
    });
}
