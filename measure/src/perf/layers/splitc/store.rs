//! The rate of stores into the other process's memory, until that process has counted the last
//! byte.

use std::time::{Duration, Instant};

use doorbell_splitc::{Error, World};

use super::member::{Member, Piece};
use super::ring::{Ring, Shape};
use super::stream::places;
use crate::perf::figures::Quantity;

pub async fn run(member: &Member<'_>) -> anyhow::Result<Option<(u64, Quantity)>> {
    let (world, size, other) = (&member.world, member.plan.size, member.other());
    let places = places(size);
    let mut ring = Ring::new(world, size, places).await?;
    // The number of pieces that have arrived, which the process that counts them writes to the
    // other.
    let counted = world.blocked::<u64>(world.size()).await?;
    let course = member.course(places);
    if !member.leads() {
        let checked = member.pieces(&course, async |piece| {
            world.store_sync(piece.operations * size as u64).await?;
            counted.at(other).write(piece.number + 1).await?;
            Ok(ring.wrong(piece.operations, |place| piece.first + place).await?)
        });
        checked.await?;
        return Ok(None);
    }
    let mut took = Duration::ZERO;
    let done = member.pieces(&course, async |piece| {
        let began = Instant::now();
        store(world, &ring, other, piece)?;
        let counted = counted.at(world.rank());
        counted.wait_until(|pieces| pieces > piece.number).await?;
        took += began.elapsed();
        Ok(0)
    });
    let done = done.await?;
    Ok(Some((done, Quantity::Rate(done as f64 / took.as_secs_f64()))))
}

/// Stores all messages of a piece. Stores that wait to be aggregated leave when this process next
/// awaits something of the world.
fn store(world: &World, ring: &Ring<'_>, other: usize, piece: Piece) -> Result<(), Error> {
    let is_word = ring.shape() == Shape::Word;
    for place in 0..piece.operations {
        let number = piece.first + place;
        match is_word {
            true => world.at(ring.word(other, place)).store(Ring::value(number))?,
            false => ring.span(other, place).store(ring.content(number))?,
        }
    }
    Ok(())
}
