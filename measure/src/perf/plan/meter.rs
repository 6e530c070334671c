//! How far it is: a bar on a terminal, and nothing elsewhere.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::amount::Amount;

/// A bar, which is drawn when it is told something, and at no other time: not by a thread of its
/// own, which would take the processor of what is measured.
pub struct Meter {
    bar: ProgressBar,
    amount: Amount,
}

impl Meter {
    /// A bar for a test, on standard error if that is a terminal.
    pub fn new(what: &'static str, amount: Amount) -> Self {
        let length = match amount {
            Amount::Times(times) => times,
            Amount::For(time) => time.as_millis() as u64,
        };
        let bar = ProgressBar::with_draw_target(Some(length), ProgressDrawTarget::stderr());
        let style = ProgressStyle::with_template("{msg} {wide_bar} {percent} %");
        bar.set_style(style.expect("the template is one"));
        bar.set_message(what);
        Self { bar, amount }
    }

    /// Makes a meter that shows nothing.
    pub fn hidden() -> Self {
        Self { bar: ProgressBar::hidden(), amount: Amount::Times(0) }
    }

    /// Shows that `count` rounds are done after the time `passed`.
    pub fn at(&self, count: u64, passed: Duration) {
        self.bar.set_position(match self.amount {
            Amount::Times(_) => count,
            Amount::For(_) => passed.as_millis() as u64,
        });
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
