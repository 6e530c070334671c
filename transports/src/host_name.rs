//! Names of hosts, with ports.

use std::fmt;
use std::str::FromStr;

use doorbell_core::wire::UdpPort;
use thiserror::Error;

/// The name of a host, and a port, which is RoCE's own, 4791, unless another is given. As text
/// `node7` or `node7:5000`.
///
/// ```
/// use doorbell_transports::HostName;
///
/// let host: HostName = "localhost:5000".parse().expect("a host's name");
/// let own = "udp:127.0.0.1:4000".parse()?;
/// assert_eq!(host.look_up_for(&own)?, "udp:127.0.0.1:5000".parse()?);
/// assert!("127.0.0.1:5000".parse::<HostName>().is_err(), "an address is no name");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct HostName {
    name: Box<str>,
    port: u16,
}

/// The error of text that can be no host's name.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error(
    "`{0}` can be no host's name: that has letters, digits and hyphens between dots, does not \
     end in a number, and may be followed by a colon and a port up to 65535"
)]
pub struct HostNameError(String);

impl HostName {
    /// Returns the host's name, without the port.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the port on the host.
    pub fn port(&self) -> u16 {
        self.port
    }
}

impl FromStr for HostName {
    type Err = HostNameError;

    fn from_str(text: &str) -> Result<Self, HostNameError> {
        let (name, port) = match text.split_once(':') {
            Some((name, port)) => (name, port.parse().ok()),
            None => (text, Some(UdpPort::ROCE_V2.0)),
        };
        let port = port.filter(|_| is_name(name)).ok_or_else(|| HostNameError(text.to_owned()))?;
        Ok(Self { name: name.into(), port })
    }
}

impl fmt::Display for HostName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.name, self.port)
    }
}

/// Returns whether text has the form of a host name. Text that ends in a number is taken for a
/// mistyped address: resolvers take `192.0.2` for an address, too, and complete it.
fn is_name(text: &str) -> bool {
    let labels = || text.strip_suffix('.').unwrap_or(text).split('.');
    let is_label = |label: &str| {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        (1..=63).contains(&label.len()) && label.bytes().all(allowed) && !label.starts_with('-')
    };
    let is_number = |label: &str| {
        let digits = label.strip_prefix("0x").or_else(|| label.strip_prefix("0X"));
        match digits {
            Some(digits) => digits.bytes().all(|byte| byte.is_ascii_hexdigit()),
            None => label.bytes().all(|byte| byte.is_ascii_digit()),
        }
    };
    text.len() <= 253 && labels().all(is_label) && !labels().next_back().is_some_and(is_number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_a_hosts_name_unless_it_looks_like_an_address_or_has_what_no_name_has() {
        for (text, name, port) in [
            ("node7", "node7", 4791),
            ("node7:5000", "node7", 5000),
            ("node7.example.org.:0", "node7.example.org.", 0),
            ("rack_2-node7", "rack_2-node7", 4791),
            ("7up", "7up", 4791),
        ] {
            let host: HostName = text.parse().expect(text);
            assert_eq!((host.name(), host.port()), (name, port));
            assert_eq!(host.to_string().parse(), Ok(host));
        }
        let long = "n".repeat(64);
        for text in [
            "",
            ".",
            ":5000",
            "node7:",
            "node7:65536",
            "node7:a",
            "a..b",
            "-a",
            "a b",
            "a:1:2",
            "192.0.2.300",
            "192.0.2",
            "7",
            "0x7f000001",
            "node.7",
            "fe80::1%eth0",
            "[::1]",
            "*",
            "nöde",
            &long,
        ] {
            assert!(text.parse::<HostName>().is_err(), "{text}");
        }
    }
}
