//! The rate of split-phase puts into the other process's memory, many under way at a time.

use std::time::{Duration, Instant};

use doorbell_splitc::{Error, World};

use super::member::{Member, Piece};
use super::ring::{Ring, Shape};
use super::stream::{Copies, WINDOW, places};
use crate::perf::figures::Quantity;

/// How many different messages are put as bulk: the messages from 0 on, which lie ready in the
/// shared memory of the process that puts. The number of places is no multiple of `SOURCES`, so the
/// message that is put into a place differs from the one before.
const SOURCES: u64 = 5;

/// The number of the message that the put `number` carries.
fn carried(ring: &Ring<'_>, number: u64) -> u64 {
    if ring.shape() == Shape::Bulk { number % SOURCES } else { number }
}

pub async fn run(member: &Member<'_>) -> anyhow::Result<Option<(u64, Quantity)>> {
    let (world, size) = (&member.world, member.plan.size);
    let places = places(size);
    let mut ring = Ring::new(world, size, places).await?;
    let course = member.course(places);
    if !member.leads() {
        let checked = member.pieces(&course, async |piece| {
            world.barrier().await?;
            let mut wrong = 0;
            for place in 0..piece.operations {
                let number = carried(&ring, piece.first + place);
                wrong += u64::from(!ring.holds(place, number).await?);
            }
            Ok(wrong)
        });
        checked.await?;
        return Ok(None);
    }
    if ring.shape() == Shape::Bulk {
        for number in 0..SOURCES {
            ring.set(number, number).await?;
        }
    }
    let (other, mut copies) = (member.other(), Copies::new(size));
    let mut took = Duration::ZERO;
    let done = member.pieces(&course, async |piece| {
        let began = Instant::now();
        match ring.shape() {
            Shape::Bulk => carry_bulk(world, &ring, (other, &mut copies), piece).await?,
            _ => carry(world, &ring, other, piece).await?,
        }
        took += began.elapsed();
        world.barrier().await?;
        Ok(0)
    });
    let done = done.await?;
    Ok(Some((done, Quantity::Rate(done as f64 / took.as_secs_f64()))))
}

/// Puts all messages of a piece, of a few bytes each, and waits until they have arrived.
async fn carry(world: &World, ring: &Ring<'_>, other: usize, piece: Piece) -> Result<(), Error> {
    let is_word = ring.shape() == Shape::Word;
    for from in (0..piece.operations).step_by(WINDOW) {
        for place in from..piece.operations.min(from + WINDOW as u64) {
            let number = piece.first + place;
            match is_word {
                true => drop(world.at(ring.word(other, place)).put(Ring::value(number))?),
                false => drop(ring.span(other, place).put(ring.content(number))?),
            }
        }
        world.sync().await?;
    }
    Ok(())
}

/// Puts all messages of a piece out of this process's shared memory, and waits until they have
/// arrived.
async fn carry_bulk(
    world: &World,
    ring: &Ring<'_>,
    (other, copies): (usize, &mut Copies),
    piece: Piece,
) -> Result<(), Error> {
    let own = world.rank();
    for place in 0..piece.operations {
        let from = ring.bytes(own, carried(ring, piece.first + place));
        copies.push(world.copy(from, ring.bytes(other, place), ring.size())?).await?;
    }
    copies.finish().await?;
    world.sync().await
}
