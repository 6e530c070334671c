//! The rate of split-phase gets of the other process's memory, many under way at a time.

use std::time::{Duration, Instant};

use doorbell_splitc::{Error, Get, GetAll, World};

use super::member::{Member, Piece};
use super::ring::{Ring, Shape};
use super::stream::{Copies, WINDOW, places};
use crate::perf::figures::Quantity;

pub async fn run(member: &Member<'_>) -> anyhow::Result<Option<(u64, Quantity)>> {
    let (world, size) = (&member.world, member.plan.size);
    let places = places(size);
    let ring = Ring::new(world, size, places).await?;
    let course = member.course(places);
    if !member.leads() {
        for place in 0..places {
            ring.set(place, place).await?;
        }
        let served = member.pieces(&course, async |_| {
            world.barrier().await?;
            Ok(0)
        });
        served.await?;
        return Ok(None);
    }
    let mut getter = Getter {
        world,
        other: member.other(),
        ring,
        places,
        words: Vec::with_capacity(WINDOW),
        rows: Vec::with_capacity(WINDOW),
        copies: Copies::new(size),
        landed: vec![0; places as usize * size],
    };
    let mut took = Duration::ZERO;
    let done = member.pieces(&course, async |piece| {
        let began = Instant::now();
        getter.carry(piece).await?;
        took += began.elapsed();
        let wrong = getter.wrong(piece).await?;
        world.barrier().await?;
        Ok(wrong)
    });
    let done = done.await?;
    Ok(Some((done, Quantity::Rate(done as f64 / took.as_secs_f64()))))
}

/// The process that gets, with what it needs for a piece.
struct Getter<'w> {
    world: &'w World,
    other: usize,
    ring: Ring<'w>,
    places: u64,
    words: Vec<Get<u64>>,
    rows: Vec<GetAll<u8>>,
    copies: Copies,
    /// The bytes that the gets of a piece have fetched. Bulk lands in shared memory instead.
    landed: Vec<u8>,
}

impl Getter<'_> {
    /// Gets all messages of a piece, and waits until they have arrived.
    async fn carry(&mut self, piece: Piece) -> Result<(), Error> {
        match self.ring.shape() {
            Shape::Word => self.carry_words(piece).await,
            Shape::Few => self.carry_rows(piece).await,
            Shape::Bulk => self.carry_bulk(piece).await,
        }
    }

    /// The place from which the operation `number` of a piece gets. It changes from piece to piece,
    /// so that an operation which fetches nothing is noticed by what the piece before has left.
    #[inline]
    fn source(&self, piece: Piece, number: u64) -> u64 {
        (number + piece.number) & (self.places - 1)
    }

    async fn carry_words(&mut self, piece: Piece) -> Result<(), Error> {
        for from in (0..piece.operations).step_by(WINDOW) {
            let to = piece.operations.min(from + WINDOW as u64);
            for number in from..to {
                let word = self.ring.word(self.other, self.source(piece, number));
                self.words.push(self.world.at(word).get()?);
            }
            self.world.sync().await?;
            let landed = self.landed.as_chunks_mut().0[from as usize..].iter_mut();
            for (word, landed) in self.words.drain(..).zip(landed) {
                *landed = word.value()?.to_ne_bytes();
            }
        }
        Ok(())
    }

    async fn carry_rows(&mut self, piece: Piece) -> Result<(), Error> {
        let size = self.ring.size();
        for from in (0..piece.operations).step_by(WINDOW) {
            let to = piece.operations.min(from + WINDOW as u64);
            for number in from..to {
                let span = self.ring.span(self.other, self.source(piece, number));
                self.rows.push(span.get()?);
            }
            self.world.sync().await?;
            let landed = self.landed[from as usize * size..].chunks_exact_mut(size);
            for (row, landed) in self.rows.drain(..).zip(landed) {
                landed.copy_from_slice(&row.values()?);
            }
        }
        Ok(())
    }

    async fn carry_bulk(&mut self, piece: Piece) -> Result<(), Error> {
        let (ring, own) = (&self.ring, self.world.rank());
        for number in 0..piece.operations {
            let from = ring.bytes(self.other, self.source(piece, number));
            let copy = self.world.copy(from, ring.bytes(own, number), ring.size())?;
            self.copies.push(copy).await?;
        }
        self.copies.finish().await?;
        self.world.sync().await
    }

    /// How many messages of a piece are not what they should be.
    async fn wrong(&mut self, piece: Piece) -> Result<u64, Error> {
        let (places, size) = (self.places, self.ring.size());
        let source = |number| (number + piece.number) & (places - 1);
        if self.ring.shape() == Shape::Bulk {
            return self.ring.wrong(piece.operations, source).await;
        }
        let landed = (0..piece.operations).zip(self.landed.chunks_exact(size));
        Ok(landed.filter(|(number, bytes)| !self.ring.is(source(*number), bytes)).count() as u64)
    }
}
