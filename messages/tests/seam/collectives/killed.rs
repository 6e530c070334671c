//! A member's process that is killed or stopped in the middle of collectives: the others are told
//! which member it was.

use std::time::Duration;

use doorbell_am::Name;
use doorbell_kit::child::{self, Child};
use doorbell_messages::Endpoint;
use doorbell_messages::collectives::{Group, GroupError};

use crate::collectives::members::in_time;

/// The fate of the last member.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Killed,
    Stopped,
}

const SIZE: usize = 4;

async fn open(device: &str) -> Endpoint {
    let time = Duration::from_secs(1);
    let builder = Endpoint::builder().endpoint(|endpoint| endpoint.keep_alive(time));
    builder.open(device).await.expect("the device opens")
}

/// Runs collectives of all kinds until one fails.
async fn until_it_fails(group: &Group, mut each: impl FnMut(u64)) -> GroupError {
    for round in 0.. {
        let root = round as usize % SIZE;
        let outcome = async {
            let sum = group.all_reduce(vec![round; 10_000], |left, right| left + right).await?;
            assert!(sum.iter().all(|sum| *sum == SIZE as u64 * round));
            group.broadcast(root, vec![7; 100_000].into()).await?;
            group.gather(root, vec![7; 50_000].into()).await?;
            group.barrier().await
        };
        if let Err(why) = outcome.await {
            return why;
        }
        each(round);
    }
    unreachable!("there is always another round")
}

/// A member in a process of its own.
fn member(part: &str) {
    let (rank, device) = part.split_once(' ').expect("a rank and a device");
    let rank: usize = rank.parse().expect("a rank");
    runtime().block_on(async {
        let endpoint = open(device).await;
        child::tell(endpoint.name());
        let names = child::listen().expect("the parent knows all names");
        let names: Vec<Name> = names.split(' ').map(|name| name.parse().expect("a name")).collect();
        let group = Group::join(endpoint, rank, &names).await.expect("all join");
        let why = until_it_fails(&group, |_| {}).await;
        child::tell(format!("{:?}: {why}", why.rank()));
    });
}

fn runtime() -> tokio::runtime::Runtime {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.worker_threads(2).enable_all().build().expect("threads can be started")
}

fn one_ends(test: &str, device: &str, fate: Fate) {
    if let Some(part) = child::part() {
        return member(&part);
    }
    let test = format!("collectives::killed::{test}");
    let all = async {
        let endpoint = open(device).await;
        let start = |rank| Child::start(&test, &format!("{rank} {device}"), None);
        let mut children: Vec<_> = (1..SIZE).map(start).collect();
        let mut names = vec![endpoint.name().to_string()];
        names.extend(children.iter_mut().map(Child::hear));
        children.iter_mut().for_each(|child| child.say(names.join(" ")));
        let names: Vec<Name> = names.iter().map(|name| name.parse().expect("a name")).collect();
        let group = Group::join(endpoint, 0, &names).await.expect("all join");
        let mut last = children.pop().expect("there are several");
        let why = until_it_fails(&group, |round| {
            if round == 20 {
                match fate {
                    Fate::Killed => assert!(!last.kill().success()),
                    Fate::Stopped => last.stop(),
                }
            }
        });
        let why = in_time(why).await;
        assert_eq!(why.rank(), Some(SIZE - 1), "{why}");
        for mut child in children {
            let heard = child.hear();
            assert!(heard.starts_with(&format!("Some({})", SIZE - 1)), "{heard}");
            child.end();
        }
    };
    runtime().block_on(all);
}

#[test]
fn over_shared_memory_the_others_hear_of_a_member_that_is_killed() {
    let test = "over_shared_memory_the_others_hear_of_a_member_that_is_killed";
    one_ends(test, "shm", Fate::Killed);
}

#[test]
fn over_sockets_the_others_hear_of_a_member_that_is_killed() {
    let test = "over_sockets_the_others_hear_of_a_member_that_is_killed";
    one_ends(test, "udp:127.0.0.1:0", Fate::Killed);
}

#[test]
fn over_sockets_the_others_hear_of_a_member_that_is_stopped() {
    let test = "over_sockets_the_others_hear_of_a_member_that_is_stopped";
    one_ends(test, "udp:127.0.0.1:0", Fate::Stopped);
}
