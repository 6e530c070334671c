//! What all processes do together.

use bytes::Bytes;

use crate::element::Element;
use crate::error::Error;
use crate::world::World;

impl World {
    /// Waits until all processes have called this. What a process has written, put and synchronised before is
    /// seen by all behind it; stores need [`all_store_sync`](Self::all_store_sync).
    ///
    /// # Errors
    /// When a process has gone, or is in another collective.
    pub async fn barrier(&self) -> Result<(), Error> {
        self.0.flush().await?;
        Ok(self.0.group.barrier().await?)
    }

    /// Leaves the world in order: waits until everything that this process has begun is done, and until all
    /// processes have come so far. [`Job`](crate::Job) does this at the end of each program.
    ///
    /// # Errors
    /// When a process has gone, or an operation failed that nobody has asked for.
    pub async fn leave(&self) -> Result<(), Error> {
        self.sync().await?;
        self.all_store_sync().await?;
        self.0.group.clone().leave().await;
        Ok(())
    }

    /// Combines a value of each process with all others, by an operator that is associative: every process gets
    /// the same result, in which the values stand in the order of ranks.
    ///
    /// # Errors
    /// When a process has gone, or is in another collective.
    pub async fn all_reduce<T: Element + Send>(
        &self,
        value: T,
        mut operator: impl FnMut(T, T) -> T + Send + 'static,
    ) -> Result<T, Error> {
        self.0.flush().await?;
        let combine = move |left: &mut Vec<u8>, right: &[u8]| {
            let value = operator(value_of(left), value_of(right));
            left.copy_from_slice(value.as_bytes());
        };
        let bytes = Bytes::copy_from_slice(value.as_bytes());
        Ok(value_of(&self.0.group.all_reduce(bytes, combine).await?))
    }
}

fn value_of<T: Element>(bytes: &[u8]) -> T {
    T::read_from_bytes(bytes).expect("all processes combine values of one type")
}
