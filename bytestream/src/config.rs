//! The configuration of byte streams.

use std::io;
use std::time::Duration;

use crate::wire::{Hello, MOST_CREDITS, SEGMENTS};

/// The configuration of an [`Endpoint`](crate::Endpoint): how its byte streams are carried, and how
/// much memory they take.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Config {
    /// The most bytes of a stream that may be under way to this end, or received and not read. A
    /// peer that has sent as many waits until the program reads.
    ///
    /// The window is rounded down to whole [segments](Self::segment), and must have 1 to 32,767 of
    /// them. Each message takes a whole segment of the window, however short it is.
    pub window: usize,
    /// The most bytes of a message, from 64 bytes to 16 MiB. Longer writes are sent as several
    /// messages. Of two ends with different segments, the shorter segment counts.
    pub segment: usize,
    /// The most receive buffers that all streams of the endpoint share, of a segment each; at least
    /// 2. While the peers of all streams together may send fewer messages, fewer buffers are
    /// posted. A message that arrives when no buffer is posted is sent again a tenth of a
    /// millisecond later.
    pub receives: usize,
    /// How long a stream that was dropped goes on sending what was written to it. After that time
    /// its connection ends, and the peer gets an error.
    pub linger: Duration,
    /// The most streams of a listener that peers have opened and the program has not
    /// [accepted](crate::Listener::accept). Further peers wait.
    pub backlog: usize,
    /// The most completions of all streams together that may wait to be handled. Must be greater
    /// than the number of streams.
    pub completions: usize,
}

impl Default for Config {
    /// A window of 1 MiB in segments of 32 KiB, 256 shared buffers, ten seconds of lingering, a
    /// backlog of 128, and 4096 completions.
    fn default() -> Self {
        Self {
            window: 1 << 20,
            segment: 32 << 10,
            receives: 256,
            linger: Duration::from_secs(10),
            backlog: 128,
            completions: 4096,
        }
    }
}

impl Config {
    /// Checks that all fields are within their limits.
    pub(crate) fn check(&self) -> io::Result<()> {
        let refuse = |what: String| Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        let Self { window, segment, receives, .. } = *self;
        if u32::try_from(segment).is_ok_and(|segment| SEGMENTS.contains(&segment)) {
            let credits = window / segment;
            if !(1..=MOST_CREDITS.into()).contains(&credits) {
                return refuse(format!(
                    "Config::window is {window}, and must be from 1 to {MOST_CREDITS} times the \
                     segment of {segment}"
                ));
            }
        } else {
            let (least, most) = (SEGMENTS.start(), SEGMENTS.end());
            return refuse(format!(
                "Config::segment is {segment}, and must be from {least} to {most}"
            ));
        }
        if receives < 2 {
            return refuse(format!("Config::receives is {receives}, and must be at least 2"));
        }
        if self.backlog == 0 {
            return refuse("Config::backlog is 0, and must be at least 1".to_owned());
        }
        Ok(())
    }

    /// The number of messages that a peer may send before the program reads.
    pub(crate) fn credits(&self) -> u16 {
        // As was checked.
        (self.window / self.segment) as u16
    }

    pub(crate) fn hello(&self) -> Hello {
        Hello { credits: self.credits(), segment: self.segment as u32 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_configuration_is_valid() {
        assert!(Config::default().check().is_ok());
        assert_eq!(Config::default().credits(), 32);
    }

    #[test]
    fn an_invalid_configuration_says_which_field_is_wrong() {
        let with = |change: fn(&mut Config)| {
            let mut config = Config::default();
            change(&mut config);
            config.check().expect_err("it can't be").to_string()
        };
        assert!(with(|config| config.segment = 63).contains("Config::segment is 63"));
        assert!(with(|config| config.segment = usize::MAX).contains("Config::segment"));
        assert!(with(|config| config.window = 1).contains("Config::window is 1"));
        assert!(with(|config| config.window = usize::MAX).contains("Config::window"));
        assert!(with(|config| config.receives = 1).contains("Config::receives is 1"));
        assert!(with(|config| config.backlog = 0).contains("Config::backlog is 0"));
    }
}
