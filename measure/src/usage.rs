//! Errors of whoever calls the command wrongly that are found only after its arguments were parsed.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use clap::builder::RangedI64ValueParser;
use clap::value_parser;
use doorbell_transports::Spec;
use doorbell_verbs::PathMtu;

/// The exit status of a command that was called wrongly, as that of arguments that can't be parsed.
pub const STATUS: u8 = 2;

/// A wrong use of the command. The exit status is [`STATUS`].
#[derive(Debug)]
pub struct Usage(String);

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for Usage {}

/// Makes a wrong use of an error about the arguments.
pub fn wrong(why: anyhow::Error) -> anyhow::Error {
    Usage(format!("{why:#}")).into()
}

/// Checks an argument that names a device, with what it is opened on.
pub fn device(text: &str) -> Result<String, doorbell_transports::SpecError> {
    text.parse::<Spec>().map(|_| text.to_owned())
}

/// Checks an argument that names an address and a TCP port.
pub fn place(text: &str) -> Result<String, String> {
    match text.rsplit_once(':') {
        Some((host, port)) if !host.is_empty() && port.parse::<u16>().is_ok() => {
            Ok(text.to_owned())
        }
        _ => Err("a host and a TCP port are expected, as in 192.0.2.1:4790".to_owned()),
    }
}

/// Checks an argument that is the MTU of an interface.
pub fn mtu() -> RangedI64ValueParser<u32> {
    value_parser!(u32).range(PathMtu::LEAST_INTERFACE as i64..=u16::MAX.into())
}

/// Checks an argument that is a share of something, though not all of it.
pub fn share(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(share) if (0.0..1.0).contains(&share) => Ok(share),
        _ => Err("a share is expected, from 0 to less than 1: 0.01 is one of a hundred".to_owned()),
    }
}

/// Checks an argument that is a number of seconds to measure.
pub fn seconds(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(seconds) if seconds > 0.0 && Duration::try_from_secs_f64(seconds).is_ok() => Ok(seconds),
        _ => Err("a number of seconds that is more than zero is expected".to_owned()),
    }
}
