//! Errors of whoever calls the command wrongly that are found only after its arguments were parsed.

use std::error::Error;
use std::fmt;

use doorbell_transports::Spec;

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
