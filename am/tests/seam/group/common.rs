//! Groups of members in one process.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use doorbell_am::group::{Group, GroupConfig};
use doorbell_am::{Bundle, BundleConfig, Name};
use doorbell_kit::PATIENCE;
use doorbell_verbs::Nic;

use crate::promises::devices::Devices;

/// The service number of a member's endpoint.
const SERVICE: u64 = 7;

/// The names of members, each of which has a NIC.
pub fn names(nics: &[Nic]) -> Vec<Name> {
    nics.iter().map(|nic| Name::at(nic.address().to_string(), SERVICE)).collect()
}

/// Joins a group on each NIC, in the order of ranks.
pub async fn join(nics: &[Nic], config: &GroupConfig) -> Vec<Group> {
    let members = names(nics);
    let mut groups = Vec::new();
    for (rank, nic) in nics.iter().enumerate() {
        let bundle = Bundle::new(nic, &BundleConfig::default()).expect("room");
        let config = GroupConfig { rank, members: members.clone(), ..config.clone() };
        groups.push(Group::join(&bundle, config).await.expect("nobody has that name"));
    }
    groups
}

/// Runs a program as every member, each a task, and returns what each gives, in the order of ranks.
pub async fn spmd<F>(groups: &[Group], program: impl Fn(Group) -> F) -> Vec<F::Output>
where
    F: Future<Output: Send> + Send + 'static,
{
    let tasks: Vec<_> = groups.iter().map(|group| tokio::spawn(program(group.clone()))).collect();
    let mut outputs = Vec::new();
    for task in tasks {
        match task.await {
            Ok(output) => outputs.push(output),
            Err(why) => std::panic::resume_unwind(why.into_panic()),
        }
    }
    outputs
}

/// Runs a program on a runtime, and fails if it takes for ever.
#[track_caller]
pub fn in_time<F: Future>(threads: usize, program: F) -> F::Output {
    within(PATIENCE, threads, program)
}

/// Runs a program on a runtime, and fails if it takes longer than that.
#[track_caller]
pub fn within<F: Future>(patience: Duration, threads: usize, program: F) -> F::Output {
    let mut builder = match threads {
        1 => tokio::runtime::Builder::new_current_thread(),
        _ => tokio::runtime::Builder::new_multi_thread(),
    };
    let runtime = builder.worker_threads(threads).enable_all().build().expect("a runtime");
    let bounded = async { tokio::time::timeout(patience, program).await };
    match runtime.block_on(bounded) {
        Ok(output) => output,
        Err(_) => panic!("it hangs"),
    }
}

/// Runs a program with the groups of all sizes on a kind of device.
#[track_caller]
pub fn each_size<F>(
    sizes: impl IntoIterator<Item = usize>,
    devices: impl Fn(usize) -> Devices,
    program: impl Fn(Arc<Vec<Group>>) -> F,
) where
    F: Future<Output = ()>,
{
    for size in sizes {
        in_time(1, async {
            let devices = devices(size);
            let run = async {
                let groups = join(&devices.nics, &GroupConfig::default()).await;
                program(Arc::new(groups)).await;
            };
            devices.run(run).await;
        });
    }
}

/// Makes the bytes that a member gives to a collective, different for each member and each `salt`.
pub fn bytes(rank: usize, salt: usize, len: usize) -> Bytes {
    (0..len).map(|at| (at * 7 + rank * 31 + salt * 101) as u8).collect()
}

/// Appends the right to the left, as an operator that is associative and not commutative.
pub fn concat(left: &mut Vec<u8>, right: &[u8]) {
    left.extend_from_slice(right);
}

/// Runs a program with the members of a group in shared memory.
#[track_caller]
pub fn with_members<F: Future<Output = ()>>(size: usize, program: impl FnOnce(Vec<Group>) -> F) {
    in_time(1, async {
        let devices = Devices::shm(size);
        program(join(&devices.nics, &GroupConfig::default()).await).await;
    });
}
