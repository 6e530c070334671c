//! The order of all keys, by their ranks.

use doorbell::splitc::{Error, World};

use crate::ranks::Ranks;

/// Full verification: moves all keys to where their ranks say, and returns whether they are in
/// order then. A collective call: all processes await it, and get the same result.
pub async fn sort_and_check(mut ranks: Ranks, world: &World, keys: &[u32]) -> Result<bool, Error> {
    let ends = world.all_gather(ranks.first as usize + ranks.up_to.len()).await?;
    let mut rows = vec![Vec::new(); world.size()];
    for &key in keys {
        let owner = ends.partition_point(|&end| end <= key as usize);
        rows[owner.min(world.size() - 1)].push(key);
    }
    let own = world.all_to_all_vec(&rows).await?.concat();

    let sorted = ranks.sort(&own);
    let counts = world.all_gather(own.len() as u32).await?;
    let before: u32 = counts[..world.rank()].iter().sum();
    let last = sorted.as_deref().and_then(<[u32]>::last).copied().unwrap_or(0);
    let lasts = world.all_gather(last).await?;
    let least = sorted.as_deref().and_then(<[u32]>::first).copied().unwrap_or(u32::MAX);
    let in_order = sorted.is_some_and(|keys| keys.is_sorted())
        && before == ranks.lesser
        && lasts[..world.rank()].iter().all(|&last| last <= least);
    world.all_reduce(u8::from(in_order), u8::min).await.map(|all| all == 1)
}
