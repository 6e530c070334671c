//! The bodies of the fuzz targets of jobs, run briefly on inputs that are the same each time.

use doorbell_job::Card;
use doorbell_kit::{effort, try_inputs};
use doorbell_simulation::Luck;

#[path = "../../../fuzz/src/job/mod.rs"]
mod bodies;

#[test]
fn cards_are_read_as_they_were_written() {
    let card = Card::of_process().to_string();
    explore("job_card", bodies::card, effort(20_000, 200_000), |luck| {
        let mut input = card.clone().into_bytes();
        for _ in 0..=luck.below(4) {
            let at = luck.below(input.len() as u64) as usize;
            input[at] = *b"%=% \n0fg\xe9\x00".get(luck.below(16) as usize).unwrap_or(&b'a');
        }
        input
    });
}

#[test]
fn nothing_that_a_launcher_says_breaks_a_process() {
    explore("job_launcher", bodies::launcher, effort(5_000, 50_000), |luck| {
        let mut input = bytes(luck, 200);
        if luck.below(4) == 0 {
            // The three answers that a process waits for, and then the rest.
            input.splice(..input.len().min(4), [20, 29, 30, 31]);
        }
        input
    });
}

#[test]
fn nothing_that_strangers_say_to_the_service_breaks_a_job() {
    explore("job_service", bodies::service, effort(150, 3_000), |luck| bytes(luck, 400));
}

#[test]
fn nothing_that_is_said_in_place_of_the_service_breaks_a_process() {
    explore("job_process", bodies::process, effort(400, 5_000), |luck| bytes(luck, 300));
}

/// Gives a body inputs that are drawn from a seed.
fn explore(name: &str, body: fn(&[u8]), count: usize, mut draw: impl FnMut(&mut Luck) -> Vec<u8>) {
    let mut luck = Luck::new(name.bytes().fold(0, |sum, byte| sum << 5 ^ u64::from(byte)));
    try_inputs(name, body, (0..count).map(|_| draw(&mut luck)));
}

/// Draws at least one byte, and fewer than `most`.
fn bytes(luck: &mut Luck, most: u64) -> Vec<u8> {
    (0..=luck.below(most - 1)).map(|_| luck.draw() as u8).collect()
}
