//! The configuration of byte streams.

use std::io;
use std::time::Duration;

use crate::wire::{Hello, SEGMENTS, SHORT_AT_ONCE, WINDOWS};

/// The configuration of an [`Endpoint`](crate::Endpoint): how its byte streams are carried, and how
/// much memory they take.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Config {
    /// The most bytes of a stream that may be under way to this end, or received and not read: from
    /// 1 to 1 GiB. A peer that has sent as many waits until the program reads.
    ///
    /// The window counts bytes, whatever the lengths of writes and messages. A peer is told what
    /// was read with the next short message that goes to it, or else when that is half of the
    /// window, or, if the peer has no room, a millisecond later.
    pub window: usize,
    /// The most bytes of a message, from 64 bytes to 16 MiB. Longer writes are sent as several
    /// messages. Of two ends with different segments, the shorter segment counts.
    pub segment: usize,
    /// The most receive buffers that all streams of the endpoint share, of a segment each; at least
    /// 2. While the peers of all streams together may send fewer messages, fewer buffers are
    /// posted. A message that arrives when no buffer is posted is sent again a tenth of a
    /// millisecond later.
    pub receives: usize,
    /// How long a stream that was dropped goes on sending what was written to it, and so do all
    /// streams when the endpoint is [closed](crate::Endpoint::close). After that time the
    /// connection ends, and the peer gets an error.
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
        for (name, length, lengths) in [("window", window, WINDOWS), ("segment", segment, SEGMENTS)]
        {
            if !u32::try_from(length).is_ok_and(|length| lengths.contains(&length)) {
                let (least, most) = (lengths.start(), lengths.end());
                return refuse(format!(
                    "Config::{name} is {length}, and must be from {least} to {most}"
                ));
            }
        }
        if receives < 2 {
            return refuse(format!("Config::receives is {receives}, and must be at least 2"));
        }
        if self.backlog == 0 {
            return refuse("Config::backlog is 0, and must be at least 1".to_owned());
        }
        Ok(())
    }

    /// The window, which was checked to have no more bytes than this type counts.
    pub(crate) fn window(&self) -> u32 {
        self.window as u32
    }

    /// The number of messages that a stream can have under way, short ones included: as many as
    /// carry a window like this end's own, but no more than 32,767.
    pub(crate) fn messages(&self) -> usize {
        const MOST: usize = 0x7FFF;
        (self.window.div_ceil(self.segment) + SHORT_AT_ONCE).min(MOST)
    }

    pub(crate) fn hello(&self) -> Hello {
        Hello { window: self.window(), segment: self.segment as u32 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_configuration_is_valid() {
        assert!(Config::default().check().is_ok());
        assert_eq!(Config::default().messages(), 32 + SHORT_AT_ONCE);
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
        assert!(with(|config| config.window = 0).contains("Config::window is 0"));
        assert!(with(|config| config.window = usize::MAX).contains("Config::window"));
        assert!(with(|config| config.receives = 1).contains("Config::receives is 1"));
        assert!(with(|config| config.backlog = 0).contains("Config::backlog is 0"));
    }
}
