//! Members that were not given the same: keys, lists of addresses, heaps. Both sides are told at
//! once what differs.

use std::net::UdpSocket;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use doorbell_kit::{child, stranger};
use doorbell_splitc::{Config, Job, JoinError, RunError};
use doorbell_verbs::Nic;

use crate::common::{config, in_time};

/// Addresses on a device that nobody has for now.
pub fn addresses(device: &str, count: usize) -> Vec<String> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let (own, run) = (std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    let bound: Vec<_> =
        (0..count).map(|_| UdpSocket::bind("127.0.0.1:0").expect("a port is free")).collect();
    let udp = |rank: usize| bound[rank].local_addr().expect("it is bound").to_string();
    let name = |rank| match device {
        "shm" => format!("shm:strangers-{own}-{run}/{rank}"),
        _ => format!("udp:{}", udp(rank)),
    };
    (0..count).map(name).collect()
}

/// The arguments with which a member was started: its rank, the addresses that it was given, and
/// its configuration.
type Started = (usize, Vec<String>, Config);

/// Starts members, and returns why each could not join. None of them may wait for as long as the
/// start may take, which is longer than any test.
fn join_all(members: Vec<Started>) -> Vec<JoinError> {
    in_time(move || {
        let started: Vec<_> = members
            .into_iter()
            .map(|(rank, addresses, config)| {
                let config = Config { start: Duration::from_secs(3600), ..config };
                let job = Job::member(rank, addresses).config(config);
                std::thread::spawn(move || job.run(async |_| Ok(())))
            })
            .collect();
        let ended = started.into_iter().map(|member| match member.join().expect("no panic") {
            Err(RunError::Join { why, .. }) => why,
            other => panic!("{other:?}"),
        });
        ended.collect()
    })
}

/// The processes that a text is to name, and what it is to say of them.
#[track_caller]
fn says(why: &JoinError, other: usize, what: &[&str]) {
    let text = why.to_string();
    let JoinError::Stranger { rank, .. } = why else { panic!("{why:?}") };
    assert_eq!(*rank, other, "{text}");
    assert!(what.iter().all(|what| text.contains(what)), "{text}");
}

#[test]
fn two_members_with_different_keys_are_both_told_so() {
    for device in ["shm", "udp"] {
        let all = addresses(device, 2);
        let of = |rank: usize| (rank, all.clone(), Config { key: 70 + rank as u64, ..config() });
        let ended = join_all(vec![of(0), of(1)]);
        says(&ended[0], 1, &["key"]);
        says(&ended[1], 0, &["key"]);
    }
}

#[test]
fn two_members_with_different_heaps_are_both_told_the_sizes() {
    for device in ["shm", "udp"] {
        let all = addresses(device, 2);
        let heap = |rank: usize| (1 << 20) << rank;
        let of = |rank: usize| (rank, all.clone(), Config { heap: heap(rank), ..config() });
        let ended = join_all(vec![of(0), of(1)]);
        says(&ended[0], 1, &["heap", "1048576", "2097152"]);
        says(&ended[1], 0, &["heap", "1048576", "2097152"]);
    }
}

#[test]
fn two_members_with_different_numbers_of_addresses_are_both_told_the_numbers() {
    for device in ["shm", "udp"] {
        for longer in 0..2 {
            let all = addresses(device, 3);
            let count = |rank: usize| if rank == longer { 3 } else { 2 };
            let of = |rank: usize| (rank, all[..count(rank)].to_vec(), config());
            let ended = join_all(vec![of(0), of(1)]);
            says(&ended[0], 1, &["addresses", "2", "3"]);
            says(&ended[1], 0, &["addresses", "2", "3"]);
        }
    }
}

#[test]
fn of_three_members_one_of_which_differs_each_is_told_at_once() {
    for device in ["shm", "udp"] {
        for odd in 0..3 {
            let all = addresses(device, 3);
            let of = |rank: usize| {
                let heap = if rank == odd { 1 << 21 } else { 1 << 20 };
                (rank, all.clone(), Config { heap, ..config() })
            };
            let ended = join_all((0..3).map(of).collect());
            for (rank, why) in ended.iter().enumerate().filter(|(rank, _)| *rank != odd) {
                says(why, odd, &["heap", "1048576", "2097152"]);
                assert!(rank != odd);
            }
            let JoinError::Stranger { rank, .. } = &ended[odd] else { panic!("{:?}", ended[odd]) };
            assert_ne!(*rank, odd);
        }
    }
}

/// Both processes waited for as long as the start may take, and then did not say why.
#[test]
fn a_name_that_another_user_has_is_reported_at_once_with_the_user() {
    const TEST: &str =
        "errors::strangers::a_name_that_another_user_has_is_reported_at_once_with_the_user";
    if child::part().is_some() {
        let name = child::listen().expect("the parent says which");
        let _nic = Nic::builder().open_blocking(&name).expect("nobody has it");
        child::tell("has it");
        child::listen();
        return;
    }
    let Some(mut stranger) = stranger::start(TEST, "stranger") else { return };
    let all = addresses("shm", 2);
    stranger.say(&all[1]);
    assert_eq!(stranger.hear(), "has it");
    let why = join_all(vec![(0, all, config())]).remove(0);
    let user = stranger::user().expect("the stranger runs as one");
    says(&why, 1, &[&format!("of user {user}"), "run as the same user"]);
    stranger.say("over");
    stranger.end();
}
