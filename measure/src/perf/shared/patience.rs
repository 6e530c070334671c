//! Waiting busily, and not for ever.

use std::time::{Duration, Instant};

use anyhow::bail;

/// How long anything may take to come.
pub const LONGEST: Duration = Duration::from_secs(5);

/// How long there was nothing.
#[derive(Default)]
pub struct Patience {
    looks: u32,
    since: Option<Instant>,
    /// How often it was said to be up again.
    times: u32,
}

impl Patience {
    /// Counts another look that found nothing of `what`. Now and then, returns how long the wait
    /// has been.
    ///
    /// # Errors
    /// When it has been too long.
    #[inline]
    pub fn spend(&mut self, what: &str) -> anyhow::Result<Option<Duration>> {
        self.looks = self.looks.wrapping_add(1);
        // Reading the clock each time would cost more than a look.
        if self.looks.is_multiple_of(1 << 10) { self.judge(what).map(Some) } else { Ok(None) }
    }

    #[cold]
    fn judge(&mut self, what: &str) -> anyhow::Result<Duration> {
        let waited = self.since.get_or_insert_with(Instant::now).elapsed();
        if waited > LONGEST {
            bail!("{what} did not come within {LONGEST:?}: it was lost, or the other end has gone");
        }
        Ok(waited)
    }

    /// Whether another `silence` of the time that was waited has passed.
    pub fn is_up_again(&mut self, waited: Duration, silence: Duration) -> bool {
        let up = waited > silence * (self.times + 1);
        self.times += u32::from(up);
        up
    }
}
