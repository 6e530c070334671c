//! Arrays of programs, each with what the model says that it holds.

use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;

use doorbell_splitc::{Element, Error, GlobalPtr, Matrix, Spread, World};

use zerocopy::IntoBytes;

use crate::programs::kinds::{Kind, Long, Struct, Under};
use crate::programs::plan::{Does, Layout, New, Op, Reading, Writing};

type Going<'a, T> = Pin<Box<dyn Future<Output = Result<T, Error>> + 'a>>;

/// A check that is made when its process has synced.
pub type Later = Box<dyn FnOnce(&World) -> Result<(), Error>>;

/// An array of any type.
pub trait Object {
    /// Does what an operation says, and compares what is read with the model.
    fn perform<'a>(&'a self, op: &'a Op, signals: &'a Spread<u64>) -> Going<'a, Vec<Later>>;
    /// Notes in the model what an operation does.
    fn note(&self, op: &Op);
    /// Compares what lies in the slots of an operation with the model, which has noted the
    /// operation.
    fn check<'a>(&'a self, op: &'a Op) -> Going<'a, ()>;
    /// Compares all that the array holds with the model.
    fn check_all(&self) -> Going<'_, ()>;
    /// Compares this process's part with the model, and gives every part new values, in a private
    /// epoch.
    fn in_private(&self, draw: u64) -> Going<'_, ()>;
    /// Frees the array in all processes.
    fn free(self: Box<Self>) -> Going<'static, ()>;
    /// How many bytes an element has.
    fn size(&self) -> usize;
}

enum Place<T> {
    Spread(Spread<T>),
    Matrix(Matrix<T>),
    /// The memory that each process has allocated for itself.
    Alone(Vec<GlobalPtr<T>>),
}

struct Typed<T> {
    world: World,
    place: Place<T>,
    /// The first slot of each process.
    firsts: Vec<GlobalPtr<T>>,
    layout: Layout,
    /// The values of the slots of each process.
    holds: RefCell<Vec<Vec<T>>>,
}

/// Allocates an array, which all processes do together.
pub async fn make(world: &World, new: &New) -> Result<Box<dyn Object>, Error> {
    Ok(match new.kind {
        0 => Box::new(Typed::<u64>::new(world, &new.layout).await?),
        1 => Box::new(Typed::<i64>::new(world, &new.layout).await?),
        2 => Box::new(Typed::<f64>::new(world, &new.layout).await?),
        3 => Box::new(Typed::<u32>::new(world, &new.layout).await?),
        4 => Box::new(Typed::<i32>::new(world, &new.layout).await?),
        5 => Box::new(Typed::<f32>::new(world, &new.layout).await?),
        6 => Box::new(Typed::<u8>::new(world, &new.layout).await?),
        7 => Box::new(Typed::<u16>::new(world, &new.layout).await?),
        8 => Box::new(Typed::<[u32; 3]>::new(world, &new.layout).await?),
        9 => Box::new(Typed::<Struct>::new(world, &new.layout).await?),
        _ => Box::new(Typed::<Long>::new(world, &new.layout).await?),
    })
}

/// Makes the functions of all types known.
pub async fn define(world: &World) -> Result<(), Error> {
    world.define(u64::BUMP).await?;
    world.define(i64::BUMP).await?;
    world.define(f64::BUMP).await?;
    world.define(u32::BUMP).await?;
    world.define(i32::BUMP).await?;
    world.define(f32::BUMP).await?;
    world.define(u8::BUMP).await?;
    world.define(u16::BUMP).await?;
    world.define(<[u32; 3]>::BUMP).await?;
    world.define(Struct::BUMP).await?;
    world.define(Long::BUMP).await
}

/// Compares values by their bytes, so that every number equals itself.
#[track_caller]
fn same<T: Element>(found: &[T], expected: &[T], what: impl std::fmt::Debug) {
    if found.as_bytes() != expected.as_bytes() {
        let at =
            found.as_bytes().iter().zip(expected.as_bytes()).position(|(one, other)| one != other);
        let kind = std::any::type_name::<T>();
        panic!("{kind} is not what the model has, from byte {at:?} on, of {what:?}");
    }
}

impl<T: Kind> Typed<T> {
    async fn new(world: &World, layout: &Layout) -> Result<Self, Error> {
        let processes = world.size();
        let place = match layout {
            Layout::Blocks { len, block } => match (*block, len.div_ceil(processes)) {
                (1, _) => Place::Spread(world.spread(*len).await?),
                (block, even) if block == even => Place::Spread(world.blocked(*len).await?),
                (block, _) => Place::Spread(world.spread_blocks(*len, block).await?),
            },
            Layout::Matrix { size: [rows, columns], grid: None } => {
                Place::Matrix(world.matrix(*rows, *columns).await?)
            }
            Layout::Matrix { size: [rows, columns], grid: Some(grid) } => {
                Place::Matrix(world.matrix_on(*rows, *columns, *grid).await?)
            }
            Layout::Alone(lens) => {
                let own = world.allocate::<T>(lens[world.rank()])?;
                Place::Alone(world.all_gather(own).await?)
            }
        };
        let firsts = match &place {
            Place::Alone(firsts) => firsts.clone(),
            Place::Spread(spread) => from_first(spread.pointer(0).ok(), processes),
            Place::Matrix(matrix) => from_first(matrix.pointer(0, 0).ok(), processes),
        };
        let holds = layout.counts(processes).into_iter().map(|len| vec![T::new_zeroed(); len]);
        let (layout, holds) = (layout.clone(), RefCell::new(holds.collect()));
        let typed = Self { world: world.clone(), place, firsts, layout, holds };
        typed.has_the_layout();
        Ok(typed)
    }

    /// Compares where elements are with the model.
    fn has_the_layout(&self) {
        let (processes, own) = (self.world.size(), self.world.rank());
        let places = self.layout.places(processes);
        for (index, &(rank, slot)) in places.iter().enumerate() {
            let expected = self.slot(rank, slot);
            match &self.place {
                Place::Spread(spread) => {
                    assert_eq!(spread.pointer(index).expect("it is in the array"), expected);
                    assert_eq!(spread.index_of(expected), Some(index));
                    assert_eq!(spread.owner(index).expect("it is in the array"), rank);
                }
                Place::Matrix(matrix) => {
                    let (row, column) = (index / matrix.columns(), index % matrix.columns());
                    assert_eq!(matrix.pointer(row, column).expect("it is there"), expected);
                }
                Place::Alone(_) => unreachable!("there are no indices"),
            }
        }
        if let Place::Spread(spread) = &self.place {
            let indices = places.iter().enumerate().filter(|(_, (rank, _))| *rank == own);
            let indices: Vec<_> = indices.map(|(index, _)| index).collect();
            assert_eq!(spread.own_indices().collect::<Vec<_>>(), indices);
        }
    }

    fn slot(&self, rank: usize, slot: usize) -> GlobalPtr<T> {
        self.firsts[rank].local_add(slot as isize)
    }

    /// The indices of an operation's slots, where there are such.
    fn indices(&self, op: &Op) -> Option<(&Spread<T>, Vec<usize>)> {
        let Place::Spread(spread) = &self.place else { return None };
        let index = |slot| spread.index_of(self.slot(op.to, slot)).expect("it is in the array");
        Some((spread, op.slots().map(index).collect()))
    }

    fn held(&self, op: &Op) -> Vec<T> {
        op.slots().map(|slot| self.holds.borrow()[op.to][slot]).collect()
    }

    async fn read(&self, op: &Op, reading: Reading) -> Result<Vec<Later>, Error> {
        let (world, expected, what) = (&self.world, self.held(op), op.clone());
        let (block, blocks, step) = op.blocks();
        let span = world.span(self.slot(op.to, op.from), block);
        let span = if op.strided.is_some() { span.strided(blocks, step) } else { span };
        match (reading, self.indices(op)) {
            (Reading::Each, indices) => {
                for (at, slot) in op.slots().enumerate() {
                    let place = match &indices {
                        Some((spread, indices)) => spread.at(indices[at]),
                        None => world.at(self.slot(op.to, slot)),
                    };
                    same(&[place.read().await?], &expected[at..=at], op);
                }
            }
            (Reading::Gets, _) => {
                let gets = op.slots().map(|slot| world.at(self.slot(op.to, slot)).get());
                let gets: Vec<_> = gets.collect::<Result<_, _>>()?;
                let later: Later = Box::new(move |_| {
                    let values = gets.into_iter().map(|get| get.value());
                    same(&values.collect::<Result<Vec<_>, _>>()?, &expected, what);
                    Ok(())
                });
                return Ok(vec![later]);
            }
            (Reading::Gather, Some((spread, indices))) => {
                same(&spread.gather(&indices)?.done().await?, &expected, op);
            }
            (Reading::Span | Reading::Gather, _) => same(&span.read().await?, &expected, op),
            (Reading::SpanLater, _) => {
                let values = span.get()?;
                let later: Later = Box::new(move |_| {
                    same(&values.values()?, &expected, what);
                    Ok(())
                });
                return Ok(vec![later]);
            }
            (Reading::Copy, _) => {
                let own = world.allocate::<T>(op.len)?;
                let expected = self.holds.borrow()[op.to][op.from..][..op.len].to_vec();
                let copied = world.copy(self.slot(op.to, op.from), own, op.len)?;
                let later: Later = Box::new(move |world| {
                    assert!(copied.is_done());
                    let values = world.span(own, expected.len()).get()?.values()?;
                    same(&values, &expected, what);
                    world.free(own)
                });
                return Ok(vec![later]);
            }
        }
        Ok(Vec::new())
    }

    async fn write(
        &self,
        op: &Op,
        writing: Writing,
        signals: &Spread<u64>,
    ) -> Result<Vec<Later>, Error> {
        let world = &self.world;
        let values: Vec<_> = op.slots().map(|slot| T::drawn(op.drawn(slot))).collect();
        let (block, blocks, step) = op.blocks();
        let span = world.span(self.slot(op.to, op.from), block);
        let span = if op.strided.is_some() { span.strided(blocks, step) } else { span };
        let each = op.slots().zip(&values);
        let mut each = each.map(|(slot, value)| (world.at(self.slot(op.to, slot)), *value));
        match writing {
            Writing::Each => {
                for (place, value) in each {
                    let ptr = place.pointer();
                    place.write(value).await?;
                    same(&[world.at(ptr).read().await?], &[value], op);
                }
            }
            Writing::Puts => each.try_for_each(|(place, value)| place.put(value).map(drop))?,
            Writing::Stores => each.try_for_each(|(place, value)| place.store(value))?,
            Writing::StoresSoon => {
                for (place, value) in each {
                    place.store_async(value).await?;
                }
            }
            Writing::Span => span.write(&values).await?,
            Writing::SpanPut => drop(span.put(&values)?),
            Writing::SpanStore => span.store(&values)?,
            Writing::Scatter => {
                let (spread, indices) = self.indices(op).expect("it is an array of indices");
                drop(spread.scatter(&indices, &values)?);
            }
            Writing::Signal => drop(span.put_signal(&values, signals.at(op.to), 1)?),
            Writing::Copy => {
                let own = world.allocate::<T>(op.len)?;
                let mut later = Vec::new();
                for (at, (slot, value)) in op.slots().zip(&values).enumerate() {
                    let from = own.local_add(at as isize);
                    world.at(from).write(*value).await?;
                    later.push(world.copy(from, self.slot(op.to, slot), 1)?);
                }
                return Ok(vec![Box::new(move |world| {
                    assert!(later.iter().all(|copy| copy.is_done()));
                    world.free(own)
                })]);
            }
        }
        Ok(Vec::new())
    }

    async fn change(&self, op: &Op) -> Result<Vec<Later>, Error> {
        let (mut values, mut data, mut results) = (Vec::new(), Vec::new(), Vec::new());
        for slot in op.slots() {
            let (place, draw) = (self.world.at(self.slot(op.to, slot)), op.drawn(slot));
            match op.does {
                Does::Change(verb, way) => match T::change(place, verb, way, T::drawn(draw)).await?
                {
                    Under::Value(get) => values.push(get),
                    Under::Data(done) => data.push(done),
                    Under::Nothing => {}
                },
                _ if draw % 3 == 0 => assert_eq!(place.apply(T::BUMP, draw).await?, draw),
                _ => results.push((place.get_apply(T::BUMP, draw)?, draw)),
            }
        }
        Ok(vec![Box::new(move |_| {
            assert!(data.iter().all(|done| done.is_done()));
            results.into_iter().try_for_each(|(result, draw)| {
                assert_eq!(result.value()?, draw);
                Ok::<_, Error>(())
            })?;
            values.into_iter().try_for_each(|value| value.value().map(drop))
        })])
    }
}

/// The first slot of each process, where the first of process 0 is known.
fn from_first<T>(first: Option<GlobalPtr<T>>, processes: usize) -> Vec<GlobalPtr<T>> {
    (0..processes).map(|rank| first.map_or(GlobalPtr::null(), |first| first.on(rank))).collect()
}

impl<T: Kind> Object for Typed<T> {
    fn perform<'a>(&'a self, op: &'a Op, signals: &'a Spread<u64>) -> Going<'a, Vec<Later>> {
        Box::pin(async move {
            match op.does {
                Does::Read(reading) => self.read(op, reading).await,
                Does::Write(writing) => self.write(op, writing, signals).await,
                Does::Change(..) | Does::Bump => self.change(op).await,
            }
        })
    }

    fn note(&self, op: &Op) {
        let mut holds = self.holds.borrow_mut();
        for slot in op.slots() {
            let (value, draw) = (&mut holds[op.to][slot], op.drawn(slot));
            match op.does {
                Does::Read(_) => {}
                Does::Write(_) => *value = T::drawn(draw),
                Does::Change(verb, _) => *value = value.changed(verb, T::drawn(draw)),
                Does::Bump => value.bump(draw),
            }
        }
    }

    fn check<'a>(&'a self, op: &'a Op) -> Going<'a, ()> {
        Box::pin(async move { self.read(op, Reading::Each).await.map(drop) })
    }

    fn check_all(&self) -> Going<'_, ()> {
        Box::pin(async move {
            for (rank, &first) in self.firsts.iter().enumerate() {
                let expected = self.holds.borrow()[rank].clone();
                if !expected.is_empty() {
                    let found = self.world.span(first, expected.len()).read().await?;
                    same(&found, &expected, ("process", rank));
                }
            }
            Ok(())
        })
    }

    fn in_private(&self, draw: u64) -> Going<'_, ()> {
        Box::pin(async move {
            let own = self.world.rank();
            let new = |rank: usize, slot: usize| T::drawn(draw ^ (rank * 1000 + slot) as u64);
            let mut part = match &self.place {
                Place::Spread(spread) => spread.private().await?,
                Place::Matrix(matrix) => matrix.private().await?,
                Place::Alone(_) => unreachable!("such memory is never private"),
            };
            same(&part, &self.holds.borrow()[own][..part.len()], "the own part");
            part.iter_mut().enumerate().for_each(|(slot, value)| *value = new(own, slot));
            let lens = self.world.all_gather(part.len()).await?;
            drop(part);
            match &self.place {
                Place::Spread(spread) => spread.share().await?,
                Place::Matrix(matrix) => matrix.share().await?,
                Place::Alone(_) => unreachable!("such memory is never private"),
            }
            let mut holds = self.holds.borrow_mut();
            for (rank, len) in lens.into_iter().enumerate() {
                (0..len).for_each(|slot| holds[rank][slot] = new(rank, slot));
            }
            Ok(())
        })
    }

    fn free(self: Box<Self>) -> Going<'static, ()> {
        Box::pin(async move {
            match self.place {
                Place::Spread(spread) => spread.free().await,
                Place::Matrix(matrix) => matrix.free().await,
                Place::Alone(firsts) => {
                    let own = self.world.rank();
                    self.world.barrier().await?;
                    self.world.free(firsts[own])
                }
            }
        })
    }

    fn size(&self) -> usize {
        size_of::<T>()
    }
}
