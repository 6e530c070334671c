//! Places for messages in the memory of both processes, and the messages that are moved.

use doorbell_splitc::{Error, GlobalPtr, Span, World};

use crate::perf::shared::pattern::Pattern;

/// The way in which messages of a size are moved.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shape {
    /// As a single word.
    Word,
    /// As bytes that are passed to the call.
    Few,
    /// As bytes that are in this process's shared memory.
    Bulk,
}

impl Shape {
    pub fn of(size: usize) -> Self {
        /// From how many bytes on a message is moved from heap to heap, without a copy on the way.
        const BULK: usize = 512;
        match size {
            8 => Self::Word,
            size if size < BULK => Self::Few,
            _ => Self::Bulk,
        }
    }
}

/// Places for messages of one size, as many in each process. The contents of a message follow from
/// the message's number.
pub struct Ring<'w> {
    world: &'w World,
    /// The pointer to the first place of process 0.
    first: GlobalPtr<u64>,
    size: usize,
    /// How many words lie between the beginnings of two places.
    step: usize,
    pattern: Pattern,
    found: Vec<u8>,
}

impl<'w> Ring<'w> {
    /// Allocates `places` places in each process. A collective call: all processes await it.
    pub async fn new(world: &'w World, size: usize, places: u64) -> Result<Self, Error> {
        let align = if size > 64 { 64 } else { 8 };
        let step = size.next_multiple_of(align) / 8;
        let array = world.blocked(places as usize * step * world.size()).await?;
        let (first, pattern) = (array.pointer(0)?, Pattern::new(size));
        Ok(Self { world, first, size, step, pattern, found: vec![0; size] })
    }

    /// The way in which the messages of this size are moved.
    #[inline]
    pub fn shape(&self) -> Shape {
        Shape::of(self.size)
    }

    /// How many bytes a message has.
    pub fn size(&self) -> usize {
        self.size
    }

    /// The pointer to a place of a process, as to a word.
    #[inline]
    pub fn word(&self, rank: usize, place: u64) -> GlobalPtr<u64> {
        self.first.on(rank).local_add((place as usize * self.step) as isize)
    }

    /// The pointer to a place of a process, as to bytes.
    #[inline]
    pub fn bytes(&self, rank: usize, place: u64) -> GlobalPtr<u8> {
        self.word(rank, place).cast().expect("bytes begin anywhere")
    }

    /// The span of all bytes of a place of a process.
    #[inline]
    pub fn span(&self, rank: usize, place: u64) -> Span<'w, u8> {
        self.world.span(self.bytes(rank, place), self.size)
    }

    /// Fills the first `places` places of a process with zeros.
    pub async fn clear(&self, rank: usize, places: u64) -> Result<(), Error> {
        let words = places as usize * self.step;
        self.world.span(self.word(rank, 0), words).write(&vec![0; words]).await
    }

    /// The message `number`, if messages are words.
    #[inline]
    pub fn value(number: u64) -> u64 {
        number.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15)
    }

    /// The bytes of the message `number`, if messages are not words.
    #[inline]
    pub fn content(&self, number: u64) -> &[u8] {
        self.pattern.of(number, self.size)
    }

    /// Writes the message `number` into a place of this process.
    pub async fn set(&self, place: u64, number: u64) -> Result<(), Error> {
        let own = self.world.rank();
        match self.shape() {
            Shape::Word => self.world.at(self.word(own, place)).write(Self::value(number)).await,
            _ => self.span(own, place).write(self.content(number)).await,
        }
    }

    /// Whether the bytes `found` are the message `number`.
    pub fn is(&self, number: u64, found: &[u8]) -> bool {
        match self.shape() {
            Shape::Word => found == Self::value(number).to_ne_bytes(),
            _ => found == self.content(number),
        }
    }

    /// Whether a place of this process has the message `number`.
    pub async fn holds(&mut self, place: u64, number: u64) -> Result<bool, Error> {
        let span = self.span(self.world.rank(), place);
        span.read_into(&mut self.found).await?;
        Ok(self.is(number, &self.found))
    }

    /// How many of the first `places` places of this process do not have the message whose number
    /// `number` returns for the place.
    pub async fn wrong(&mut self, places: u64, number: impl Fn(u64) -> u64) -> Result<u64, Error> {
        let mut wrong = 0;
        for place in 0..places {
            wrong += u64::from(!self.holds(place, number(place)).await?);
        }
        Ok(wrong)
    }
}
