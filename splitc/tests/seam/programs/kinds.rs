//! The types of elements that programs have arrays of.

use doorbell_splitc::{Apply, Atomic, Done, Element, Error, Get, Place};
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// A struct of 24 bytes.
#[derive(Clone, Copy, PartialEq, Debug, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub struct Struct {
    pub one: u64,
    pub two: u32,
    pub three: [u8; 4],
    pub four: f64,
}

/// An element that is longer than a message.
pub type Long = [u64; 640];

/// How numbers are changed atomically. Changes by one verb may come in any order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verb {
    Add,
    Min,
    Max,
}

/// How a change is carried out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    Fetched,
    Split,
    Put,
    Stored,
}

/// The handle by which a change is awaited, if its process waits.
pub enum Under<T: Element> {
    Value(Get<T>),
    Data(Done),
    Nothing,
}

/// A type of elements.
pub trait Kind: Element {
    /// Adds to each part of the element; the result is the argument.
    const BUMP: Apply<Self, u64, u64>;

    /// A value for a number that was drawn.
    fn drawn(draw: u64) -> Self;

    /// The function that [`BUMP`](Self::BUMP) applies.
    fn bump(&mut self, by: u64);

    /// The value that a change leaves behind.
    fn changed(self, _: Verb, _: Self) -> Self {
        unreachable!("it is no number")
    }

    /// Begins a change of a value.
    async fn change(_: Place<'_, Self>, _: Verb, _: Way, _: Self) -> Result<Under<Self>, Error> {
        unreachable!("it is no number")
    }
}

async fn change<T: Atomic>(
    place: Place<'_, T>,
    verb: Verb,
    way: Way,
    value: T,
) -> Result<Under<T>, Error> {
    match (verb, way) {
        (Verb::Add, Way::Fetched) => drop(place.fetch_add(value).await?),
        (Verb::Add, Way::Split) => return Ok(Under::Value(place.get_add(value)?)),
        (Verb::Add, Way::Put) => return Ok(Under::Data(place.put_add(value)?)),
        (Verb::Add, Way::Stored) => place.store_add(value)?,
        (Verb::Min, Way::Stored) => place.store_min(value)?,
        (Verb::Max, Way::Stored) => place.store_max(value)?,
        (Verb::Min, _) => drop(place.fetch_min(value).await?),
        (Verb::Max, _) => drop(place.fetch_max(value).await?),
    }
    Ok(Under::Nothing)
}

macro_rules! numbers {
    ($($number:ident: $drawn:expr, $plus:expr;)+) => {$(
        impl Kind for $number {
            const BUMP: Apply<Self, u64, u64> = Apply::new(stringify!($number), |it, by| {
                it.bump(by);
                by
            });

            fn drawn(draw: u64) -> Self {
                $drawn(draw)
            }

            fn bump(&mut self, by: u64) {
                *self = $plus(*self, $drawn(by));
            }

            fn changed(self, verb: Verb, value: Self) -> Self {
                match verb {
                    Verb::Add => $plus(self, value),
                    Verb::Min => self.min(value),
                    Verb::Max => self.max(value),
                }
            }

            async fn change(
                place: Place<'_, Self>,
                verb: Verb,
                way: Way,
                value: Self,
            ) -> Result<Under<Self>, Error> {
                change(place, verb, way, value).await
            }
        }
    )+};
}

// Sums of whole numbers are exact in any order, as long as they are small.
numbers! {
    u64: |draw| draw, u64::wrapping_add;
    i64: |draw| draw as i64, i64::wrapping_add;
    u32: |draw| draw as u32, u32::wrapping_add;
    i32: |draw| draw as i32, i32::wrapping_add;
    f64: |draw| (draw % 1001) as f64 - 500.0, std::ops::Add::add;
    f32: |draw| (draw % 101) as f32 - 50.0, std::ops::Add::add;
}

macro_rules! others {
    ($($name:literal: $other:ty, $drawn:expr, $bump:expr;)+) => {$(
        impl Kind for $other {
            const BUMP: Apply<Self, u64, u64> = Apply::new($name, |it, by| {
                it.bump(by);
                by
            });

            fn drawn(draw: u64) -> Self {
                $drawn(draw)
            }

            fn bump(&mut self, by: u64) {
                $bump(self, by);
            }
        }
    )+};
}

fn bump_all<const N: usize>(all: &mut [u64; N], by: u64) {
    for (at, word) in all.iter_mut().enumerate() {
        *word = word.wrapping_add(by ^ at as u64);
    }
}

others! {
    "u8": u8, |draw| draw as u8, |it: &mut u8, by| *it = it.wrapping_add(by as u8);
    "u16": u16, |draw| draw as u16, |it: &mut u16, by| *it = it.wrapping_add(by as u16);
    "triple": [u32; 3],
        |draw: u64| [draw as u32, (draw >> 16) as u32, (draw >> 32) as u32],
        |it: &mut [u32; 3], by| it.iter_mut().for_each(|it| *it = it.wrapping_add(by as u32));
    "struct": Struct,
        |draw: u64| Struct {
            one: draw,
            two: !draw as u32,
            three: (draw as u32).rotate_left(7).to_le_bytes(),
            four: (draw % 97) as f64,
        },
        |it: &mut Struct, by: u64| {
            it.one = it.one.wrapping_add(by);
            it.two = it.two.wrapping_sub(by as u32);
        };
    "long": Long,
        |draw: u64| std::array::from_fn(|at| draw.wrapping_mul(2 * at as u64 + 1)),
        bump_all;
}
