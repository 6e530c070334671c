//! Every collective over shared memory and sockets, on one thread and on several.

use crate::collectives::members::run;
use crate::collectives::program::{self, LENGTHS};

async fn collectives_give_what_they_should(device: &'static str, lengths: &'static [usize]) {
    for size in 1..=9 {
        run(device, size, move |group| async move {
            for &len in lengths {
                program::all(&group, len).await;
            }
            group.leave().await;
        })
        .await;
    }
}

#[tokio::test]
async fn over_shared_memory_on_one_thread() {
    collectives_give_what_they_should("shm", &LENGTHS).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn over_shared_memory_on_two_threads() {
    collectives_give_what_they_should("shm", &LENGTHS).await;
}

#[tokio::test]
async fn over_sockets_on_one_thread() {
    collectives_give_what_they_should("udp:127.0.0.1:0", &[0, 1000, 40_000, 100_000]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn over_sockets_on_two_threads() {
    collectives_give_what_they_should("udp:127.0.0.1:0", &[0, 1000, 40_000, 100_000]).await;
}

// Each member begins many collectives before it awaits the first of them.
#[tokio::test]
async fn collectives_that_are_begun_together_go_on_beside_each_other() {
    run("shm", 4, |group| async move {
        let sums = (0..50_u64).map(|at| group.all_reduce(vec![at], |left, right| left + right));
        let sums: Vec<_> = sums.map(tokio::spawn).collect();
        let barrier = group.barrier();
        for (at, sum) in (0..).zip(sums) {
            assert_eq!(sum.await.expect("no panic").expect("all add"), [4 * at]);
        }
        barrier.await.expect("all are there");
        group.leave().await;
    })
    .await;
}
