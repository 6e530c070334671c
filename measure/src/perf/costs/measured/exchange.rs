//! The exchange whose time is broken down.

use crate::perf::shared::patience::Patience;

/// Something that one end asks and the other answers, on one thread.
pub trait Exchange {
    /// Asks once, serves the other end, and takes the answer.
    fn once(&mut self) -> anyhow::Result<()>;
}

/// Serves both ends until `look` finds `what` it looks for.
#[inline]
pub fn until<T>(
    serve: impl Fn(),
    what: &str,
    mut look: impl FnMut() -> Option<T>,
) -> anyhow::Result<T> {
    let mut patience = Patience::default();
    loop {
        if let Some(found) = look() {
            return Ok(found);
        }
        serve();
        patience.spend(what)?;
    }
}
