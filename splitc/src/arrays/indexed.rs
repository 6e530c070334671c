//! Gathering and scattering elements of an array by their indices.

use std::cell::RefCell;
use std::rc::Rc;

use super::Spread;
use crate::access::{By, Done, EMPTY, GetAll, load, pieces};
use crate::element::Element;
use crate::error::Error;
use crate::landing::Values;
use crate::messages::{Entry, Row};
use crate::peers::{Route, Shape};
use crate::world::Landing;

impl<T: Element> Spread<T> {
    /// Begins to fetch the elements at `indices`; the values come in the order of the indices.
    ///
    /// ```
    /// # doorbell_splitc::Job::threads(2).run(async |world| {
    /// let table = world.spread::<u64>(100).await?;
    /// table.at(world.rank()).write(7).await?;
    /// world.barrier().await?;
    /// assert_eq!(table.gather(&[1, 50, 0])?.done().await?, [7, 0, 7]);
    /// # Ok(world.barrier().await?)
    /// # })?;
    /// # Ok::<(), doorbell_splitc::RunError>(())
    /// ```
    ///
    /// # Errors
    /// When an index is beyond the array, or a process has gone. Elements that come earlier in the
    /// list may have been asked for by then.
    pub fn gather(&self, indices: &[usize]) -> Result<GetAll<T>, Error> {
        let (world, len) = (self.world(), size_of::<T>());
        let _amid = world.0.amid();
        let values = Rc::new(RefCell::new(Values::new(indices.len())?));
        let row: Row = values.clone();
        for (number, &index) in indices.iter().enumerate() {
            let (peer, offset) = world.0.resolve(self.raw_pointer(index), len)?;
            let at = number * len;
            match peer.route(Shape::Split, len) {
                Route::Memory(memory) => values.borrow_mut().values[number] = load(memory, offset),
                Route::OneSided(far) => {
                    values.borrow_mut().missing += 1;
                    let landing = Landing::Row(row.clone(), at as u64);
                    let into = vec![0; len];
                    world.0.post_read((peer.rank, far), (offset, len), into, landing)?;
                }
                Route::Messages(far) => {
                    let longest = far.outbox.borrow().longest_entry();
                    for (at, offset, len) in pieces((at, offset, len), longest) {
                        values.borrow_mut().missing += 1;
                        let entry = Entry { len, offset: offset as u64, ..EMPTY };
                        world.0.push_for_row((peer, far), entry, (&row, at as u64))?;
                    }
                }
            }
        }
        Ok(GetAll { world: world.clone(), values })
    }

    /// Begins to write each of `values` to the element whose index is at the same position of
    /// `indices`.
    ///
    /// If an index occurs twice, either of its values may be there in the end.
    ///
    /// # Errors
    /// When an index is beyond the array, the lists have different lengths, or a process has gone.
    /// Values that come earlier in the list may be written by then.
    pub fn scatter(&self, indices: &[usize], values: &[T]) -> Result<Done, Error> {
        if indices.len() != values.len() {
            let (indices, values) = (indices.len(), values.len());
            return Err(Error::invalid(format!("there are {indices} indices and {values} values")));
        }
        let world = self.world();
        // A process answers messages in their order, so the answer to the last one tells of all.
        let mut last = vec![None; world.size()];
        let mut others = Vec::new();
        for (&index, &value) in indices.iter().zip(values) {
            match self.at(index).put(value)?.by {
                By::Now => {}
                By::Message { rank, number } => last[rank] = Some(number),
                by => others.push(by),
            }
        }
        let messages = last.into_iter().enumerate();
        others.extend(
            messages.filter_map(|(rank, number)| number.map(|number| By::Message { rank, number })),
        );
        Ok(Done { world: world.clone(), by: By::All(others.into()) })
    }
}
