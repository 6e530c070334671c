//! The collective operations, of a world and of a team.

use bytes::Bytes;
use doorbell_am::group::Group;

use super::begun::{Collective, Outcome};
use super::combining::{bytes_of, combine, to_combine, value_of, values_of};
use super::team::Team;
use crate::element::Element;
use crate::error::Error;
use crate::world::World;

/// Decodes the parts of several processes, in their order.
fn each<T>(parts: Vec<Bytes>, read: impl Fn(&[u8]) -> Outcome<T>) -> Outcome<Vec<T>> {
    parts.iter().map(|part| read(part)).collect()
}

macro_rules! collectives {
    ($($whose:ident)+) => {$(
        impl $whose {
            /// Waits until all processes have called `barrier`. What a process has written, put and
            /// synchronised before the barrier is seen by all processes behind it; stores need
            /// [`all_store_sync`](World::all_store_sync).
            pub fn barrier(&self) -> Collective<()> {
                let part = self.group().barrier();
                self.collective(async move { part.await.map(Ok) })
            }

            /// Announces that this process has reached a barrier, without waiting for the others:
            /// the first phase of a split-phase barrier. Awaiting the handle is the second phase,
            /// and the process does something else in between.
            ///
            /// ```
            /// # doorbell_splitc::Job::threads(2).run(async |world| {
            /// let barrier = world.arrive()?;
            /// // Nobody waits for what is done here.
            /// barrier.done().await?;
            /// # Ok(())
            /// # })?;
            /// # Ok::<(), doorbell_splitc::RunError>(())
            /// ```
            ///
            /// # Errors
            /// When a process has gone to which operations were to be sent before.
            pub fn arrive(&self) -> Result<super::Begun<()>, Error> {
                self.the_world().0.flush_now()?;
                let part = self.group().arrive();
                self.collective(async move { part.await.map(Ok) }).begin()
            }

            /// Gives every process the value that the process of rank `root` passes; what others
            /// pass does not matter.
            pub fn broadcast<T: Element + Send>(&self, root: usize, value: T) -> Collective<T> {
                let part = self.group().broadcast(root, bytes_of(&[value]));
                self.collective(async move { part.await.map(|bytes| value_of(&bytes)) })
            }

            /// Gives every process the values that the process of rank `root` passes; what others
            /// pass does not matter.
            pub fn broadcast_vec<T: Element + Send>(
                &self,
                root: usize,
                values: &[T],
            ) -> Collective<Vec<T>> {
                let part = self.group().broadcast(root, bytes_of(values));
                self.collective(async move { part.await.map(|bytes| values_of(&bytes)) })
            }

            /// Gives the process of rank `root` the value of each process, in the order of ranks.
            /// The other processes get `None`.
            pub fn gather<T: Element + Send>(
                &self,
                root: usize,
                value: T,
            ) -> Collective<Option<Vec<T>>> {
                let part = self.group().gather(root, bytes_of(&[value]));
                self.collective(async move {
                    Ok(part.await?.map(|parts| each(parts, value_of)).transpose())
                })
            }

            /// Gives the process of rank `root` a row of values from each process, in the order of
            /// ranks. The other processes get `None`.
            pub fn gather_vec<T: Element + Send>(
                &self,
                root: usize,
                values: &[T],
            ) -> Collective<Option<Vec<Vec<T>>>> {
                let part = self.group().gather(root, bytes_of(values));
                self.collective(async move {
                    Ok(part.await?.map(|parts| each(parts, values_of)).transpose())
                })
            }

            /// Gives each process one of the values that the process of rank `root` passes, one for
            /// each process in the order of ranks. The other processes pass `None`.
            pub fn scatter<T: Element + Send>(
                &self,
                root: usize,
                values: Option<&[T]>,
            ) -> Collective<T> {
                let one = |value: &T| bytes_of(std::slice::from_ref(value));
                let parts = values.map(|values| values.iter().map(one).collect());
                let part = self.group().scatter(root, parts);
                self.collective(async move { part.await.map(|bytes| value_of(&bytes)) })
            }

            /// Gives each process one of the rows that the process of rank `root` passes, one for
            /// each process in the order of ranks. The other processes pass `None`.
            pub fn scatter_vec<T: Element + Send>(
                &self,
                root: usize,
                rows: Option<&[Vec<T>]>,
            ) -> Collective<Vec<T>> {
                let parts = rows.map(|rows| rows.iter().map(|row| bytes_of(row)).collect());
                let part = self.group().scatter(root, parts);
                self.collective(async move { part.await.map(|bytes| values_of(&bytes)) })
            }

            /// Gives every process the value of each process, in the order of ranks.
            pub fn all_gather<T: Element + Send>(&self, value: T) -> Collective<Vec<T>> {
                let part = self.group().all_gather(bytes_of(&[value]));
                self.collective(async move { part.await.map(|parts| each(parts, value_of)) })
            }

            /// Gives every process a row of values from each process, in the order of ranks.
            pub fn all_gather_vec<T: Element + Send>(&self, values: &[T]) -> Collective<Vec<Vec<T>>> {
                let part = self.group().all_gather(bytes_of(values));
                self.collective(async move { part.await.map(|parts| each(parts, values_of)) })
            }

            /// Exchanges one value between each two processes: a process passes one value for each
            /// process, in the order of ranks, and gets one value from each process, in the same
            /// order.
            pub fn all_to_all<T: Element + Send>(&self, values: &[T]) -> Collective<Vec<T>> {
                let one = |value: &T| bytes_of(std::slice::from_ref(value));
                let part = self.group().all_to_all(values.iter().map(one).collect());
                self.collective(async move { part.await.map(|parts| each(parts, value_of)) })
            }

            /// Exchanges one row between each two processes: a process passes one row for each
            /// process, in the order of ranks, and gets one row from each process, in the same
            /// order.
            pub fn all_to_all_vec<T: Element + Send>(
                &self,
                rows: &[Vec<T>],
            ) -> Collective<Vec<Vec<T>>> {
                let parts = rows.iter().map(|row| bytes_of(row)).collect();
                let part = self.group().all_to_all(parts);
                self.collective(async move { part.await.map(|parts| each(parts, values_of)) })
            }

            /// Combines the values of all processes by an associative operator, in the order of
            /// ranks, and gives the result to the process of rank `root`. The other processes get
            /// `None`.
            pub fn reduce<T: Element + Send>(
                &self,
                root: usize,
                value: T,
                operator: impl FnMut(T, T) -> T + Send + 'static,
            ) -> Collective<Option<T>> {
                let part = self.group().reduce_bytes(root, to_combine(&[value], &operator), combine(operator));
                self.collective(async move {
                    Ok(part.await?.map(|bytes| value_of(&bytes)).transpose())
                })
            }

            /// Combines the values of all processes by an associative operator, in the order of
            /// ranks, and gives every process the same result, to the last bit.
            ///
            /// ```
            /// # doorbell_splitc::Job::threads(3).run(async |world| {
            /// let product = world.all_reduce(world.rank() + 1, |a, b| a * b).await?;
            /// assert_eq!(product, 6);
            /// # Ok(())
            /// # })?;
            /// # Ok::<(), doorbell_splitc::RunError>(())
            /// ```
            ///
            /// Processes that pass values of different types, or different ones of the
            /// [`operators`](crate::operators), get an error. Whether operators of the program's
            /// own are the same is for the program to see to.
            pub fn all_reduce<T: Element + Send>(
                &self,
                value: T,
                operator: impl FnMut(T, T) -> T + Send + 'static,
            ) -> Collective<T> {
                let part = self.group().all_reduce_bytes(to_combine(&[value], &operator), combine(operator));
                self.collective(async move { part.await.map(|bytes| value_of(&bytes)) })
            }

            /// Combines rows of values of all processes, element by element, as
            /// [`all_reduce`](Self::all_reduce) combines one value of each process. All rows must
            /// have the same length.
            pub fn all_reduce_vec<T: Element + Send>(
                &self,
                values: &[T],
                operator: impl FnMut(T, T) -> T + Send + 'static,
            ) -> Collective<Vec<T>> {
                let part = self.group().all_reduce_bytes(to_combine(values, &operator), combine(operator));
                self.collective(async move { part.await.map(|bytes| values_of(&bytes)) })
            }

            /// Gives each process the values of all processes up to and including itself, combined
            /// by an associative operator in the order of ranks.
            pub fn scan<T: Element + Send>(
                &self,
                value: T,
                operator: impl FnMut(T, T) -> T + Send + 'static,
            ) -> Collective<T> {
                let part = self.group().scan_bytes(to_combine(&[value], &operator), combine(operator));
                self.collective(async move { part.await.map(|bytes| value_of(&bytes)) })
            }

            /// Gives each process the values of all processes before itself, combined by an
            /// associative operator in the order of ranks. The first process gets `None`.
            pub fn exclusive_scan<T: Element + Send>(
                &self,
                value: T,
                operator: impl FnMut(T, T) -> T + Send + 'static,
            ) -> Collective<Option<T>> {
                let part = self.group().exclusive_scan_bytes(to_combine(&[value], &operator), combine(operator));
                self.collective(async move {
                    Ok(part.await?.map(|bytes| value_of(&bytes)).transpose())
                })
            }

            /// Divides the processes into teams. Processes that pass the same colour form a team,
            /// in the order of the keys that they pass, and of their ranks where keys are equal. A
            /// process that passes no colour is in no team, and gets `None`.
            ///
            /// ```
            /// # doorbell_splitc::Job::threads(4).run(async |world| {
            /// let parity = world.rank() as u32 % 2;
            /// let team = world.split(Some(parity), 0).await?.expect("it has a colour");
            /// assert_eq!(team.all_gather(world.rank()).await?, [parity as usize, parity as usize + 2]);
            /// # Ok(())
            /// # })?;
            /// # Ok::<(), doorbell_splitc::RunError>(())
            /// ```
            ///
            /// # Errors
            /// When a process has gone.
            pub async fn split(&self, colour: Option<u32>, key: u32) -> Result<Option<Team>, Error> {
                let world = self.the_world();
                let group = world.0.while_flushing(self.group().split(colour, key)).await??;
                Ok(group.map(|group| Team { world: world.clone(), group }))
            }

            fn collective<T: Send + 'static>(
                &self,
                part: impl Future<Output = Result<Outcome<T>, doorbell_am::group::GroupError>>
                + Send
                + 'static,
            ) -> Collective<T> {
                Collective::new(self.the_world(), Box::pin(part))
            }
        }
    )+};
}

collectives! { World Team }

impl World {
    fn group(&self) -> &Group {
        &self.0.group
    }

    fn the_world(&self) -> &Self {
        self
    }
}

impl Team {
    fn group(&self) -> &Group {
        &self.group
    }

    fn the_world(&self) -> &World {
        &self.world
    }
}
