//! The collectives of the Intel MPI Benchmarks, in four sizes.

use std::time::Duration;

use anyhow::ensure;
use bytes::Bytes;
use doorbell_messages::collectives::{Group, Links};
use serde_json::json;

use super::ping_pong::budget;
use super::rounds::timed;
use crate::perf::Plan;
use crate::perf::figures::Row;

/// The sizes of the paper's table, unless one is given.
const SIZES: [usize; 4] = [16, 4 << 10, 64 << 10, 4 << 20];

/// The operations, as the benchmarks name them.
const OPERATIONS: [&str; 10] = [
    "SendRecv",
    "Exchange",
    "Allreduce",
    "Reduce",
    "Allgather",
    "Gather",
    "Scatter",
    "Alltoall",
    "Bcast",
    "Barrier",
];

pub async fn run<L: Links>(
    group: &Group<L>,
    plan: &Plan,
    beat: &dyn Fn(),
) -> anyhow::Result<Vec<Row>> {
    let sizes = if plan.size == 0 { &SIZES[..] } else { std::slice::from_ref(&plan.size) };
    let budget = budget(plan, sizes.len() * OPERATIONS.len())?;
    let mut rows = Vec::new();
    for (place, &size) in sizes.iter().enumerate() {
        let data = Data::new(group, size);
        for operation in OPERATIONS {
            // A barrier has no size.
            if operation == "Barrier" && place > 0 {
                continue;
            }
            let (time, rounds) = one(group, operation, &data, budget, beat).await?;
            rows.push(vec![
                ("operation", json!(operation)),
                ("size", json!(if operation == "Barrier" { 0 } else { size })),
                ("rounds", json!(rounds)),
                ("us", json!(time)),
            ]);
        }
    }
    Ok(rows)
}

/// The data that a member gives to the collectives of one size.
struct Data {
    rank: usize,
    members: usize,
    body: Bytes,
    parts: Vec<Bytes>,
    numbers: Vec<f32>,
    zero: Vec<f32>,
}

impl Data {
    fn new<L: Links>(group: &Group<L>, size: usize) -> Self {
        let (rank, members) = (group.rank(), group.size());
        let body = Self::of(rank, size);
        let parts = vec![body.clone(); members];
        let number = |at: usize| (at % 100) as f32;
        let numbers = (0..size / 4).map(number).collect();
        Self { rank, members, body, parts, numbers, zero: vec![0.0; size / 4] }
    }

    /// Makes the bytes that the member of a rank sends.
    fn of(rank: usize, size: usize) -> Bytes {
        (0..size).map(|at| (at * 7 + rank) as u8).collect()
    }

    /// Returns whether bytes are those of a member: all of them, or by their length.
    fn is_of(&self, rank: usize, came: &Bytes, whole: bool) -> bool {
        let size = self.body.len();
        if whole { *came == Self::of(rank, size) } else { came.len() == size }
    }
}

/// Times a collective with each member as the root, and divides by the number of members.
async fn one<L: Links>(
    group: &Group<L>,
    operation: &str,
    data: &Data,
    budget: Duration,
    beat: &dyn Fn(),
) -> anyhow::Result<(f64, u64)> {
    let mut sums = data.numbers.clone();
    let round = async |number: u64| {
        beat();
        for root in 0..data.members {
            let whole = number == 0;
            let is_right = call(group, operation, data, root, whole, &mut sums).await?;
            ensure!(is_right, "{operation} has not given what it should");
        }
        Ok(())
    };
    let (time, rounds) = timed(group, budget, round).await?;
    Ok((time / data.members as f64, rounds * data.members as u64))
}

/// Runs a collective once. Returns whether the result is right, by all of its bytes or by lengths.
async fn call<L: Links>(
    group: &Group<L>,
    operation: &str,
    data: &Data,
    root: usize,
    whole: bool,
    sums: &mut Vec<f32>,
) -> anyhow::Result<bool> {
    let Data { rank, members, body, parts, numbers, .. } = data;
    let (next, last) = ((rank + 1) % members, (rank + members - 1) % members);
    let of_all = |came: &[Bytes]| came.iter().enumerate().all(|(of, it)| data.is_of(of, it, whole));
    let is_root = root == *rank;
    Ok(match operation {
        "SendRecv" => {
            let came = group.send_receive(next, last, 1, body.clone()).await?;
            data.is_of(last, &came, whole)
        }
        "Exchange" => {
            let messages = vec![(last, body.clone()), (next, body.clone())];
            let came = group.exchange(2, messages).await?;
            came.iter().zip([last, next]).all(|(came, of)| data.is_of(of, came, whole))
        }
        "Allreduce" => {
            *sums = group.all_reduce(std::mem::take(sums), f32::max).await?;
            if whole { sums == numbers } else { sums.len() == numbers.len() }
        }
        "Reduce" => {
            let own = if is_root { &data.zero } else { numbers };
            let found = group.reduce(root, own.clone(), f32::max).await?;
            found.is_none_or(|found| !whole || found == *numbers)
        }
        "Allgather" => of_all(&group.all_gather(body.clone()).await?),
        "Gather" => group.gather(root, body.clone()).await?.is_none_or(|all| of_all(&all)),
        "Scatter" => {
            let parts = is_root.then(|| parts.clone());
            data.is_of(root, &group.scatter(root, parts).await?, whole)
        }
        "Alltoall" => of_all(&group.all_to_all(parts.clone()).await?),
        "Bcast" => data.is_of(root, &group.broadcast(root, body.clone()).await?, whole),
        _ => {
            group.barrier().await?;
            true
        }
    })
}
