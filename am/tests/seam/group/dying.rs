//! Members whose processes are killed.

use std::time::{Duration, Instant};

use bytes::Bytes;
use doorbell_am::group::{Group, GroupConfig, GroupError};
use doorbell_am::{Bundle, BundleConfig, Name};
use doorbell_kit::child::{self, Child};
use doorbell_verbs::Nic;

use crate::group::common::{in_time, spmd};

/// The members in this process; the one behind them is another process.
const HERE: usize = 5;

/// Much less than the half minute for which a connection may be idle, and much more than a busy
/// machine takes for the two seconds that it should be.
const AT_MOST: Duration = Duration::from_secs(15);

async fn join(nic: &Nic, rank: usize, members: &[Name]) -> Group {
    let bundle = Bundle::new(nic, &BundleConfig::default()).expect("room");
    let config = GroupConfig { rank, members: members.to_vec(), ..GroupConfig::default() };
    Group::join(&bundle, config).await.expect("nobody has that name")
}

/// The last member, which comes to one barrier and to no other.
fn comes_once(device: &str) {
    in_time(1, async {
        let nic = Nic::open(device).await.expect("nobody has it");
        child::tell(nic.address());
        let members = child::listen().expect("the parent says them");
        let members: Vec<Name> =
            members.split(' ').map(|name| name.parse().expect("a name")).collect();
        let group = join(&nic, HERE, &members).await;
        group.barrier().await.expect("all are there");
        child::tell("it has come");
        std::future::pending::<()>().await;
    });
}

/// Kills a member. Members that wait for it, and those that wait for them, end with an error that
/// names the killed member; and so do members that come later.
fn killed(test: &'static str, device: impl Fn(usize) -> String) {
    if let Some(device) = child::part() {
        return comes_once(&device);
    }
    in_time(1, async {
        let mut child = Child::start(test, &device(HERE), None);
        let nics: Vec<_> = (0..HERE)
            .map(|rank| Nic::builder().open_blocking(&device(rank)).expect("nobody has it"))
            .collect();
        let mut addresses: Vec<_> = nics.iter().map(|nic| nic.address().to_string()).collect();
        addresses.push(child.hear());
        let members: Vec<_> = addresses.into_iter().map(|address| Name::at(address, 7)).collect();
        let text: Vec<_> = members.iter().map(Name::to_string).collect();
        child.say(text.join(" "));
        let mut groups = Vec::new();
        for (rank, nic) in nics.iter().enumerate() {
            groups.push(join(nic, rank, &members).await);
        }
        let first = spmd(&groups, |group| async move { group.barrier().await });
        for outcome in first.await {
            outcome.expect("all are there");
        }
        let heard = tokio::task::spawn_blocking(move || {
            assert_eq!(child.hear(), "it has come");
            child
        });
        let mut child = heard.await.expect("it tells");
        let waiting: Vec<_> = groups.iter().map(|group| tokio::spawn(group.barrier())).collect();
        // All that can be sent is acknowledged, and nothing is under way.
        tokio::time::sleep(Duration::from_millis(50)).await;
        assert!(!child.kill().success());
        let killed = Instant::now();
        for (rank, waiting) in waiting.into_iter().enumerate() {
            let outcome = waiting.await.expect("it does not panic");
            let gone = matches!(outcome, Err(GroupError::Gone { rank: HERE, .. }));
            assert!(gone, "member {rank}: {outcome:?}");
        }
        assert!(killed.elapsed() < AT_MOST, "{:?} until all were told", killed.elapsed());
        for group in groups {
            let later = group.all_gather(Bytes::new()).await;
            assert!(matches!(later, Err(GroupError::Gone { rank: HERE, .. })), "{later:?}");
        }
    });
}

#[test]
fn in_shared_memory_all_members_are_told_soon_that_one_was_killed() {
    let test = "group::dying::in_shared_memory_all_members_are_told_soon_that_one_was_killed";
    let own = std::process::id();
    killed(test, |rank| format!("shm:group-killed-{own}/{rank}"));
}

#[test]
fn by_udp_all_members_are_told_soon_that_one_was_killed() {
    let test = "group::dying::by_udp_all_members_are_told_soon_that_one_was_killed";
    killed(test, |_| "udp:127.0.0.1:0".to_owned());
}
