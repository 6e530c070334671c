//! A stranger whose long messages are not where, or as long as, it says.

use doorbell_messages::{Match, ReceiveError};
use doorbell_simulation::Luck;

use crate::hostile::stage::{Bounded, Requests, Stage};
use crate::wire::{EAGER, MORE, heading};

/// Describes memory of a stranger that nobody has registered, as one device reads it.
fn description(len: u64) -> Vec<u8> {
    description_for(1, len)
}

/// Describes such memory as several devices read it.
fn description_for(devices: u8, len: u64) -> Vec<u8> {
    let mut bytes = vec![0, devices];
    for device in 0..u32::from(devices) {
        bytes.extend((1_u64 << 40).to_be_bytes());
        bytes.extend(len.to_be_bytes());
        bytes.extend((7 + device).to_be_bytes());
    }
    bytes
}

pub async fn descriptions_of_other_lengths_are_malformed(device: &str) {
    let stage = Stage::open(device, Requests::Handled).await;
    let (mut luck, mut receive) = (Luck::new(2), stage.victim.receive(Match::any()));
    let before = stage.victim.statistics().malformed;
    let lies = [(5000, description(4999)), (0, description(1)), (5000, vec![0; 30])];
    let cut = (0..22).map(|len| (5000, description(5000)[..len].to_vec()));
    let random = (0..200).map(|_| {
        let bytes = (0..21 + luck.below(300)).map(|_| luck.draw() as u8).collect();
        (5000, bytes)
    });
    let lies: Vec<_> = lies.into_iter().chain(cut).chain(random).collect();
    for (len, bytes) in &lies {
        stage.stranger.say(EAGER, &[1, heading(*len, false, true), 9], bytes).await;
    }
    stage.stranger.is_heard().await;
    assert_eq!(stage.victim.statistics().malformed - before, lies.len() as u64);
    assert!(receive.test().is_none() && receive.cancel());
    stage.is_well().await;
}

pub async fn memory_that_is_not_there_fails_its_receive(device: &str) {
    let stage = Stage::open(device, Requests::Handled).await;
    // As one device reads it, and as more do than the stranger has.
    let receives = [1, 2, 100].map(|devices| (devices, stage.victim.receive(Match::exactly(1))));
    for (devices, _) in &receives {
        let bytes = description_for(*devices, 100_000);
        stage.stranger.say(EAGER, &[1, heading(100_000, false, true), 9], &bytes).await;
    }
    stage.stranger.is_heard().await;
    // Long messages of others are received meanwhile.
    let body = vec![7; 1 << 20];
    let (sent, good) = tokio::join!(
        stage.good_to_victim.send(2, body.clone()),
        stage.victim.receive(Match::exactly(2)),
    );
    sent.expect("it was received");
    assert!(good.expect("it was sent").body == body);
    for (_, receive) in receives {
        let lost = receive.await.expect_err("there is no such memory");
        assert!(matches!(lost, ReceiveError::NotPulled { bits: 1, len: 100_000, .. }), "{lost}");
    }
    stage.is_well().await;
}

// The whole body's memory was written with zeros before anything of it had come.
pub async fn an_announcement_of_a_long_message_takes_no_memory_before_its_blocks_come(
    device: &str,
) {
    const ANNOUNCED: usize = 200 << 20;
    let stage = Stage::open(device, Requests::Handled).await;
    let before = most_resident();
    let receive = stage.victim.receive(Match::exactly(1));
    let bytes = description(ANNOUNCED as u64);
    stage.stranger.say(EAGER, &[1, heading(ANNOUNCED, false, true), 9], &bytes).await;
    let lost = receive.await.expect_err("there is no such memory");
    assert!(matches!(lost, ReceiveError::NotPulled { len: ANNOUNCED, .. }), "{lost}");
    let taken = most_resident() - before;
    assert!(taken < 32 << 20, "{taken} bytes were taken for nothing");
    stage.is_well().await;
}

/// Returns the most memory that this process has had of the system at any time, in bytes.
fn most_resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux has it");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let line = line.expect("Linux tells it").trim().trim_end_matches(" kB");
    1024 * line.parse::<usize>().expect("it is a number")
}

pub async fn parts_that_belong_to_no_message_are_malformed(device: &str) {
    let stage = Stage::open(device, Requests::Handled).await;
    let mut receive = stage.victim.receive(Match::any());
    let before = stage.victim.statistics().malformed;
    stage.stranger.say(MORE, &[], &[7; 100]).await;
    // More than there is, nothing at all, and more behind the end.
    for (len, parts) in [(5000, vec![4000, 2000]), (5000, vec![4000, 0])] {
        let first = vec![7; 1000];
        stage.stranger.say(EAGER, &[1, heading(len, false, false), 0], &first).await;
        for part in parts {
            stage.stranger.say(MORE, &[], &vec![7; part][..part.min(4096)]).await;
        }
    }
    // More bytes than the whole has, and a whole that is longer than may be sent in parts.
    stage.stranger.say(EAGER, &[1, heading(5, false, false), 0], &[7; 100]).await;
    stage.stranger.say(EAGER, &[1, heading(1 << 40, false, false), 0], &[7; 100]).await;
    stage.stranger.is_heard().await;
    assert!(stage.victim.statistics().malformed - before >= 4);
    if let Some(received) = receive.test() {
        assert_eq!(received.expect("a whole message").body.len(), 5000);
    }
    receive.cancel();
    stage.is_well().await;
}

pub async fn messages_that_are_begun_and_not_ended_take_the_memory_of_one(device: &str) {
    let stage = Stage::open(device, Requests::Handled).await;
    let bounded = Bounded::to(4 << 20);
    for bits in 0..10_000 {
        stage.stranger.say(EAGER, &[bits, heading(30_000, false, false), 0], &[7; 1000]).await;
        bounded.check(format_args!("after message {bits}"));
    }
    stage.is_well().await;
}
