//! Deadlines: when they are, and which of two is the earlier one.

use std::time::Duration;

use tokio::time::Instant;

/// The longest time that a deadline may be away. Longer times are shortened to it.
const LONGEST: Duration = Duration::from_secs(30 * 365 * 24 * 60 * 60);

/// The deadline of something that begins now and may take `time`.
pub(crate) fn deadline_after(time: Duration) -> Instant {
    Instant::now() + time.min(LONGEST)
}

/// The earlier of two deadlines.
pub(crate) fn earlier(one: Option<Instant>, other: Option<Instant>) -> Option<Instant> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}
