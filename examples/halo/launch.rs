//! The members of the group: tasks of this process, or the processes of a job.

use std::time::Duration;

use anyhow::{Context, Result};
use doorbell::am::Name;
use doorbell::job::Place;
use doorbell::messages::Endpoint;
use doorbell::messages::collectives::Group;

/// How long the processes of a job may take to come.
const WITHIN: Duration = Duration::from_secs(30);

/// Runs a program at each member: at `members` of this process, or at the one that a launcher has
/// started this process for. Returns what the first member of this process returns.
pub async fn run<T, F>(device: &str, members: usize, program: impl Fn(Group) -> F) -> Result<T>
where
    T: Send + 'static,
    F: Future<Output = Result<T>> + Send + 'static,
{
    if let Some(place) = Place::find(WITHIN)? {
        return in_a_job(place, device, program).await;
    }
    let mut endpoints = Vec::new();
    for _ in 0..members {
        endpoints.push(Endpoint::open(device).await?);
    }
    let names: Vec<_> = endpoints.iter().map(|endpoint| endpoint.name().clone()).collect();
    let mut joins = Vec::new();
    for (rank, endpoint) in endpoints.into_iter().enumerate() {
        let names = names.clone();
        joins.push(tokio::spawn(async move { Group::join(endpoint, rank, &names).await }));
    }
    let mut running = Vec::new();
    for join in joins {
        running.push(tokio::spawn(program(join.await??)));
    }
    let mut outcomes = Vec::new();
    for member in running {
        outcomes.push(member.await??);
    }
    Ok(outcomes.swap_remove(0))
}

/// Runs the program in a process of a job, whose processes tell each other the names of their
/// endpoints.
async fn in_a_job<T, F: Future<Output = Result<T>>>(
    place: Place,
    device: &str,
    program: impl Fn(Group) -> F,
) -> Result<T> {
    let rank = place.rank();
    let endpoint = Endpoint::open(device).await?;
    let own = endpoint.name().to_string();
    let met = tokio::task::spawn_blocking(move || {
        let members = place.meet()?;
        let names = members.exchange(&own)?;
        anyhow::Ok((members, names))
    });
    let (members, names) = met.await.context("a thread that meets the others")??;
    let names = names.iter().map(|name| name.parse()).collect::<Result<Vec<Name>, _>>()?;
    let outcome = program(Group::join(endpoint, rank, &names).await?).await?;
    tokio::task::spawn_blocking(move || members.finish()).await.context("a thread")??;
    Ok(outcome)
}
