//! The limits of a configuration: a value that can't be used is refused, and none is silently
//! changed.

use std::fmt;
use std::time::Duration;

use doorbell_core::nic::{KeepAlive, MOST_PATHS, Numbering};

use super::config::Config;
use crate::error::OpenError;

/// The most registrations: a key has that many places besides the bits that nobody can guess.
const MOST_REGISTRATIONS: usize = 1 << 20;
/// The shortest and the longest time that a connection manager may take. A request can't express a
/// longer one; a shorter one would end before a program that is scheduled late has answered.
const TIMEOUTS: (Shown, Shown) =
    (Shown(Duration::from_millis(10)), Shown(Duration::from_secs(600)));
/// The most entries of a completion queue.
const MOST_COMPLETIONS: usize = 1 << 24;

impl Config {
    /// Returns an error if any field has a value that can't be used for a NIC with this numbering.
    pub(crate) fn check(&self, numbering: Numbering) -> Result<(), OpenError> {
        let bits = 24_u32.saturating_sub(numbering.tag_bits.saturating_add(numbering.shard_bits));
        let most_pairs = 1 << bits;
        within(
            "Config::queue_pairs",
            self.queue_pairs,
            (1, most_pairs),
            "their numbers have 24 bits, of which some say which process has them",
        )?;
        within(
            "Config::registrations",
            self.registrations,
            (1, MOST_REGISTRATIONS),
            "of their keys",
        )?;
        within(
            "Config::completions",
            self.completions,
            (2, MOST_COMPLETIONS),
            "of the memory that they take",
        )?;
        within(
            "Config::paths",
            self.paths,
            (1, MOST_PATHS),
            "1 is the route that all packets take, and of each route it is remembered how packets fared",
        )?;
        let longest = Duration::MAX;
        for (field, time) in [
            ("Config::keep_alive.idle", self.keep_alive.idle),
            ("Config::keep_alive.busy", self.keep_alive.busy),
        ] {
            let why = "a host that is only scheduled late would be taken for dead";
            within(field, Shown(time), (Shown(KeepAlive::SHORTEST), Shown(longest)), why)?;
        }
        for (field, time) in [
            ("Config::connect_timeout", self.connect_timeout),
            ("Config::accept_timeout", self.accept_timeout),
        ] {
            let why = "a peer is told of it in a request, which can't say more, or in its answers";
            within(field, Shown(time), TIMEOUTS, why)?;
        }
        Ok(())
    }
}

#[derive(Clone, Copy, PartialEq, PartialOrd)]
struct Shown(Duration);

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

fn within<T: PartialOrd + fmt::Display>(
    field: &'static str,
    found: T,
    (least, most): (T, T),
    why: &'static str,
) -> Result<(), OpenError> {
    if least <= found && found <= most {
        return Ok(());
    }
    let allowed = match found < least {
        true => format!("at least {least}"),
        false => format!("at most {most}"),
    };
    Err(OpenError::Config { field, found: found.to_string(), allowed, why })
}

#[cfg(all(test, not(verbs_loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_field_with_an_impossible_value_is_refused_by_its_name() {
        let good = Config::default;
        assert!(good().check(Numbering::default()).is_ok());
        let few = Config { queue_pairs: 1, registrations: 1, completions: 2, ..good() };
        assert!(few.check(Numbering::default()).is_ok());
        let idle = |idle| KeepAlive { idle, ..KeepAlive::default() };
        let busy = |busy| KeepAlive { busy, ..KeepAlive::default() };
        let short = Duration::from_millis(9);
        for (wrong, said) in [
            (Config { paths: 0, ..good() }, "Config::paths is 0, and must be at least 1"),
            (Config { paths: 17, ..good() }, "Config::paths is 17, and must be at most 16"),
            (
                Config { queue_pairs: 0, ..good() },
                "Config::queue_pairs is 0, and must be at least 1",
            ),
            (
                Config { queue_pairs: 300_000, ..good() },
                "Config::queue_pairs is 300000, and must be at most 262144",
            ),
            (
                Config { registrations: 0, ..good() },
                "Config::registrations is 0, and must be at least 1",
            ),
            (
                Config { completions: 1, ..good() },
                "Config::completions is 1, and must be at least 2",
            ),
            (
                Config { keep_alive: idle(short), ..good() },
                "Config::keep_alive.idle is 9ms, and must be at least 10ms",
            ),
            (
                Config { connect_timeout: Duration::ZERO, ..good() },
                "Config::connect_timeout is 0ns, and must be at least 10ms",
            ),
            (
                Config { accept_timeout: Duration::MAX, ..good() },
                "Config::accept_timeout is 18446744073709551615.999999999s, and must be at most 600s",
            ),
            (
                Config { keep_alive: busy(Duration::ZERO), ..good() },
                "Config::keep_alive.busy is 0ns, and must be at least 10ms",
            ),
        ] {
            let why = wrong.check(Numbering::default()).expect_err(said).to_string();
            assert!(why.starts_with(said), "{why}");
        }
    }
}
