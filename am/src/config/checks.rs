//! Checks of configurations: a value that could not be kept is refused, and no value is changed.

use std::fmt::Debug;
use std::ops::RangeInclusive;
use std::time::Duration;

use crate::config::{BundleConfig, EndpointConfig, Flow, MOST_TASKS};
use crate::error::OpenError;
use crate::wire::{LISTED, MOST_CREDITS};

/// The most entries of a queue.
const DEEPEST: usize = 1 << 24;
/// The longest time for which an endpoint lingers.
const LONGEST_LINGER: Duration = Duration::from_secs(60);
/// The memory for requests of asynchronous handlers, beside one payload.
const LEAST_TASK_MEMORY: usize = 8 << 10;
/// The longest payload of a message.
const LONGEST: usize = 1 << 20;

/// The reason for the greatest number of entries of a queue.
const LONGEST_QUEUE: &str = "no queue may be longer";

impl BundleConfig {
    pub(crate) fn check(&self) -> Result<(), OpenError> {
        let &Self { receives, sends } = self;
        let why = ("peers that send would hold each other up", LONGEST_QUEUE);
        within("BundleConfig::receives", receives, 4..=DEEPEST, why)?;
        let why = ("without any, nothing that is sent could complete", LONGEST_QUEUE);
        within("BundleConfig::sends", sends, 1..=DEEPEST, why)
    }
}

impl EndpointConfig {
    pub(crate) fn check(&self) -> Result<(), OpenError> {
        let &Self { credits, first_credits, payload, tasks, receives, patience, flow, .. } = self;
        let task_memory = self.task_memory;
        let why = ("without any, no peer could ever send a request", LONGEST_QUEUE);
        within("EndpointConfig::first_receives", self.first_receives, 1..=usize::MAX, why)?;
        let why =
            ("without any, no peer could ever send a request", "the wire counts them in 12 bits");
        within("EndpointConfig::credits", credits, 1..=MOST_CREDITS, why)?;
        let why = ("without any, no peer could ever send a request", LONGEST_QUEUE);
        within("EndpointConfig::first_credits", first_credits, 1..=usize::MAX, why)?;
        let why = (
            "endpoints that meet send each other lists of their handlers, in messages of 512",
            "each receive has a buffer of this length",
        );
        within("EndpointConfig::payload", payload, LISTED..=LONGEST, why)?;
        let why = (
            "without any, no asynchronous handler would ever run",
            "a peer would take more late answers for a breach of the rules",
        );
        within("EndpointConfig::tasks", tasks, 1..=MOST_TASKS, why)?;
        let why = ("a request of the longest payload would always go back", LONGEST_QUEUE);
        let least = payload + LEAST_TASK_MEMORY;
        within("EndpointConfig::task_memory", task_memory, least..=usize::MAX, why)?;
        let why = (
            "two peers have one each, for a request, and there are two more for answers",
            LONGEST_QUEUE,
        );
        within("EndpointConfig::receives", receives, 4..=DEEPEST, why)?;
        let times = Duration::from_millis(1)..=Duration::from_millis(u32::MAX.into());
        let why = (
            "peers are told it in whole milliseconds",
            "peers are told it in milliseconds, in 32 bits",
        );
        within("EndpointConfig::patience", patience, times, why)?;
        let why = ("a program may give up at once", "its thread may be blocked for as long");
        within("EndpointConfig::linger", self.linger, Duration::ZERO..=LONGEST_LINGER, why)?;
        if let Flow::Nic { receives } = flow {
            let why = ("without any, no message of a peer would ever arrive", LONGEST_QUEUE);
            within("Flow::Nic::receives", receives, 1..=DEEPEST, why)?;
        }
        Ok(())
    }
}

/// Refuses a value that is not allowed, with the reason for the least or for the greatest value.
fn within<T: PartialOrd + Debug>(
    field: &'static str,
    found: T,
    allowed: RangeInclusive<T>,
    (why_least, why_most): (&'static str, &'static str),
) -> Result<(), OpenError> {
    if allowed.contains(&found) {
        return Ok(());
    }
    let (least, most) = (allowed.start(), allowed.end());
    let (expected, why) = match found < *least {
        true => (format!("at least {least:?}"), why_least),
        false => (format!("at most {most:?}"), why_most),
    };
    Err(OpenError::Config { field, found: format!("{found:?}"), allowed: expected, why })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(checked: Result<(), OpenError>) -> String {
        checked.expect_err("it is refused").to_string()
    }

    #[test]
    fn a_field_that_could_not_be_kept_is_refused_by_its_name() {
        let good = EndpointConfig::default;
        assert!(good().check().is_ok());
        for (wrong, begins) in [
            (
                EndpointConfig { credits: 0, ..good() },
                "EndpointConfig::credits is 0, and must be at least 1: without any,",
            ),
            (
                EndpointConfig { credits: 4096, ..good() },
                "EndpointConfig::credits is 4096, and must be at most 4095: the wire counts",
            ),
            (
                EndpointConfig { first_credits: 0, ..good() },
                "EndpointConfig::first_credits is 0, and must be at least 1: without any,",
            ),
            (
                EndpointConfig { payload: 0, ..good() },
                "EndpointConfig::payload is 0, and must be at least 512",
            ),
            (
                EndpointConfig { payload: 100, ..good() },
                "EndpointConfig::payload is 100, and must be at least 512: endpoints that meet",
            ),
            (
                EndpointConfig { payload: 1 << 21, ..good() },
                "EndpointConfig::payload is 2097152, and must be at most 1048576: each receive",
            ),
            (
                EndpointConfig { tasks: 0, ..good() },
                "EndpointConfig::tasks is 0, and must be at least 1",
            ),
            (
                EndpointConfig { tasks: 65_537, ..good() },
                "EndpointConfig::tasks is 65537, and must be at most 65536",
            ),
            (
                EndpointConfig { task_memory: 12_287, ..good() },
                "EndpointConfig::task_memory is 12287, and must be at least 12288: a request of",
            ),
            (
                EndpointConfig { receives: 3, ..good() },
                "EndpointConfig::receives is 3, and must be at least 4",
            ),
            (
                EndpointConfig { patience: Duration::from_micros(900), ..good() },
                "EndpointConfig::patience is 900µs, and must be at least 1ms",
            ),
            (
                EndpointConfig { flow: Flow::Nic { receives: 0 }, ..good() },
                "Flow::Nic::receives is 0, and must be at least 1",
            ),
        ] {
            let why = said(wrong.check());
            assert!(why.starts_with(begins), "{why}");
        }
    }

    #[test]
    fn a_bundle_with_too_short_queues_is_refused() {
        for receives in [0, 1] {
            let why = said(BundleConfig { receives, ..BundleConfig::default() }.check());
            let begins = format!("BundleConfig::receives is {receives}, and must be at least 4");
            assert!(why.starts_with(&begins), "{why}");
        }
        let why = said(BundleConfig { sends: 0, ..BundleConfig::default() }.check());
        assert!(why.starts_with("BundleConfig::sends is 0, and must be at least 1"), "{why}");
    }
}
