//! Random programs of collectives, by seed, against a model.

use std::future::Future;
use std::pin::Pin;

use bytes::Bytes;
use doorbell_am::group::{Group, GroupConfig, GroupError};
use doorbell_kit::effort;
use doorbell_simulation::Faults;

use crate::group::common::{bytes, concat, in_time, join, spmd};
use crate::promises::devices::Devices;

type Outcome = Result<(), GroupError>;
type Going = Pin<Box<dyn Future<Output = Outcome> + Send>>;

/// A generator that all members have alike, so that they run the same program.
#[derive(Clone)]
struct Draw(u64);

impl Draw {
    fn below(&mut self, bound: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound
    }
}

/// A team as the model has it: the members' ranks in the whole group.
#[derive(Clone)]
struct Team {
    group: Group,
    wholes: Vec<usize>,
}

impl Team {
    fn own(&self) -> usize {
        self.wholes[self.group.rank()]
    }

    /// Returns what each member gives to an operation, in lengths that the program has drawn.
    fn given(&self, salt: usize, longest: usize) -> impl Fn(usize) -> Bytes + Clone + use<> {
        let wholes = self.wholes.clone();
        move |rank| {
            let whole = wholes[rank];
            bytes(whole, salt, (whole * 2_654_435_761 + salt * 40_503) % (longest + 1))
        }
    }
}

/// Compares what an operation has given with what the model gives.
#[track_caller]
fn is<F: PartialEq<E> + std::fmt::Debug, E: std::fmt::Debug>(found: F, expected: E) -> Outcome {
    assert_eq!(found, expected);
    Ok(())
}

/// Begins an operation that is drawn, and returns what awaits that and compares the result with the
/// model.
fn begin(team: &Team, draw: &mut Draw) -> Going {
    let (group, rank, size) = (&team.group, team.group.rank(), team.group.size());
    let (root, salt) = (draw.below(size), draw.below(1000));
    let longest = [0, 1, 40, 5000, 30_000][draw.below(5)];
    let given = team.given(salt, longest);
    let own = given(rank);
    let all = move || (0..size).map(&given).collect::<Vec<_>>();
    match draw.below(10) {
        0 => Box::pin(group.barrier()),
        1 => {
            let going = group.broadcast(root, own);
            Box::pin(async move { is(going.await?, all().swap_remove(root)) })
        }
        2 => {
            let going = group.gather(root, own);
            Box::pin(async move { is(going.await?, (rank == root).then(all)) })
        }
        3 => {
            let going = group.scatter(root, (rank == root).then(&all));
            Box::pin(async move { is(going.await?, all().swap_remove(rank)) })
        }
        4 => {
            let going = group.all_gather(own);
            Box::pin(async move { is(going.await?, all()) })
        }
        5 => {
            let going = group.all_to_all(vec![own; size]);
            Box::pin(async move { is(going.await?, all()) })
        }
        6 => {
            let going = group.reduce_bytes(root, own, concat);
            let expected = move || (rank == root).then(|| Bytes::from(all().concat()));
            Box::pin(async move { is(going.await?, expected()) })
        }
        7 => {
            let going = group.all_reduce_bytes(own, concat);
            Box::pin(async move { is(going.await?, all().concat()) })
        }
        8 => {
            let going = group.scan_bytes(own, concat);
            Box::pin(async move { is(going.await?, all()[..=rank].concat()) })
        }
        _ => {
            let going = group.exclusive_scan_bytes(own, concat);
            let expected = move || (rank > 0).then(|| Bytes::from(all()[..rank].concat()));
            Box::pin(async move { is(going.await?, expected()) })
        }
    }
}

/// Splits a team by colours and keys that are drawn; who draws the last colour is in no team.
async fn split(team: &Team, draw: &mut Draw) -> Result<Option<Team>, GroupError> {
    let colors = 1 + draw.below(3);
    let wishes: Vec<_> =
        team.wholes.iter().map(|_| (draw.below(colors + 1), draw.below(3))).collect();
    let (color, key) = wishes[team.group.rank()];
    let own = (color < colors).then_some(color as u32);
    let group = team.group.split(own, key as u32).await?;
    let mut members: Vec<_> = (0..wishes.len()).filter(|rank| wishes[*rank].0 == color).collect();
    members.sort_by_key(|rank| wishes[*rank].1);
    let wholes: Vec<_> = members.iter().map(|rank| team.wholes[*rank]).collect();
    assert_eq!(group.is_some(), own.is_some());
    let Some(group) = group else { return Ok(None) };
    assert_eq!(group.size(), wholes.len());
    assert_eq!(wholes[group.rank()], team.own());
    assert_eq!((0..wholes.len()).map(|rank| group.whole(rank)).collect::<Vec<_>>(), wholes);
    Ok(Some(Team { group, wholes }))
}

/// Runs a program of so many steps, some of them split-phase, and some of them programs of teams.
fn program(team: Team, mut draw: Draw, steps: usize, depth: usize) -> Going {
    Box::pin(async move {
        let mut under_way = Vec::new();
        for _ in 0..steps {
            match draw.below(12) {
                0 if depth < 2 => {
                    let mut below = Draw(draw.0);
                    let made = split(&team, &mut draw).await?;
                    if let Some(made) = made {
                        let steps = 1 + below.below(8);
                        under_way.push(tokio::spawn(program(made, below, steps, depth + 1)));
                    }
                }
                1..4 => under_way.push(tokio::spawn(begin(&team, &mut draw))),
                4 => {
                    for going in under_way.drain(..) {
                        going.await.expect("it does not panic")?;
                    }
                }
                5 => {
                    let arrived = team.group.arrive();
                    let between = begin(&team, &mut draw);
                    between.await?;
                    arrived.await?;
                }
                _ => begin(&team, &mut draw).await?,
            }
        }
        for going in under_way {
            going.await.expect("it does not panic")?;
        }
        Ok(())
    })
}

#[track_caller]
fn play(seed: u64, threads: usize, devices: impl Fn() -> Devices, steps: usize) {
    in_time(threads, async {
        let devices = devices();
        let run = async {
            let groups = join(&devices.nics, &GroupConfig::default()).await;
            let outcomes = spmd(&groups, |group| {
                let wholes = (0..group.size()).collect();
                program(Team { group, wholes }, Draw(seed), steps, 0)
            });
            for (rank, outcome) in outcomes.await.into_iter().enumerate() {
                outcome.unwrap_or_else(|why| panic!("rank {rank}, seed {seed}: {why}"));
            }
            for group in groups {
                assert_eq!(group.malformed(), 0, "seed {seed}");
            }
        };
        devices.run(run).await;
    });
}

#[test]
fn in_shared_memory_random_programs_give_what_the_model_gives() {
    for seed in 1..=effort(8, 200) {
        play(seed, 1, || Devices::shm(2 + seed as usize % 6), 60);
    }
    for seed in 1..=effort(4, 100) {
        play(seed, 2, || Devices::shm(2 + seed as usize % 4), 60);
    }
}

#[test]
fn by_udp_random_programs_give_what_the_model_gives() {
    for seed in 1..=effort(4, 100) {
        play(seed, 1, || Devices::udp(2 + seed as usize % 4), 60);
    }
}

#[test]
fn on_a_network_that_loses_repeats_and_reorders_random_programs_give_what_the_model_gives() {
    let faults = Faults { loss: 0.01, duplication: 0.01, reordering: 0.01, ..Faults::NONE };
    for seed in 1..=effort(6, 100) {
        play(seed, 1, || Devices::ether(2 + seed as usize % 5, seed, faults, false), 40);
    }
}
