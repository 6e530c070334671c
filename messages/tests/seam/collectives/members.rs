//! Groups of members that are tasks of this process.

use std::time::Duration;

use doorbell_am::Name;
use doorbell_messages::Endpoint;
use doorbell_messages::collectives::Group;
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// The longest that anything here may take.
pub const LONG: Duration = Duration::from_secs(60);

pub async fn in_time<F: Future>(future: F) -> F::Output {
    timeout(LONG, future).await.expect("it ends in time")
}

/// Opens the endpoints of `size` members on a device.
pub async fn endpoints(device: &str, size: usize) -> (Vec<Endpoint>, Vec<Name>) {
    let mut endpoints = Vec::new();
    for _ in 0..size {
        endpoints.push(Endpoint::open(device).await.expect("it opens"));
    }
    let names = endpoints.iter().map(|endpoint| endpoint.name().clone()).collect();
    (endpoints, names)
}

/// Joins a group with one task for each member, and runs the same program at each.
pub async fn run<F, T>(device: &str, size: usize, program: impl Fn(Group) -> F) -> Vec<T>
where
    F: Future<Output = T> + Send + 'static,
    T: Send + 'static,
{
    let (endpoints, names) = endpoints(device, size).await;
    let joins = endpoints.into_iter().enumerate().map(|(rank, endpoint)| {
        let names = names.clone();
        tokio::spawn(async move { Group::join(endpoint, rank, &names).await.expect("all join") })
    });
    let joins: Vec<JoinHandle<Group>> = joins.collect();
    let mut members = Vec::new();
    for join in joins {
        members.push(tokio::spawn(program(in_time(join).await.expect("no panic"))));
    }
    let mut outcomes = Vec::new();
    for member in members {
        outcomes.push(in_time(member).await.expect("no panic"));
    }
    outcomes
}
