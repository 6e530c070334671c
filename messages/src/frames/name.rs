//! Names of endpoints.

use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use doorbell_verbs::{Qkey, Qpn, ServiceId};

/// Text that is no name of an endpoint.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "`{0}` names no endpoint of frames: a name is ADDRESS#NUMBER.KEY, both in hexadecimal, as in \
     `udp:192.0.2.7:4791#2a.7f001234`"
)]
pub struct NameError(String);

/// The name of an endpoint of frames: the address of its NIC, the number of its queue pair, and the
/// key that lets frames in. Who has the name can send messages to the endpoint.
///
/// ```
/// use doorbell_messages::frames::Name;
///
/// let name: Name = "shm:job/1#2a.7f001234".parse()?;
/// assert_eq!(name.address(), "shm:job/1");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Name {
    address: Arc<str>,
    qpn: u32,
    key: u32,
}

impl Name {
    pub(in crate::frames) fn new(address: impl Into<Arc<str>>, qpn: Qpn, key: Qkey) -> Self {
        Self { address: address.into(), qpn: qpn.get(), key: key.0 }
    }

    /// Returns the address of the endpoint's NIC.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Returns the number of the queue pair.
    pub(in crate::frames) fn qpn(&self) -> Qpn {
        Qpn::new(self.qpn)
    }

    pub(in crate::frames) fn key(&self) -> Qkey {
        Qkey(self.key)
    }

    /// Returns the number by which frames name their sender. Number and key together are not
    /// guessed, and not met twice.
    pub(in crate::frames) fn identity(&self) -> u64 {
        u64::from(self.qpn) << 32 | u64::from(self.key)
    }

    /// Returns the service at which the endpoint takes connections of peers that place frames.
    pub(in crate::frames) fn service(&self) -> ServiceId {
        ServiceId(self.identity())
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}#{:x}.{:08x}", self.address, self.qpn, self.key)
    }
}

impl FromStr for Name {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        let parsed = || {
            let (address, numbers) = text.rsplit_once('#')?;
            let (qpn, key) = numbers.split_once('.')?;
            let qpn = u32::from_str_radix(qpn, 16).ok()?;
            let key = u32::from_str_radix(key, 16).ok()?;
            let name = Self { address: address.into(), qpn, key };
            (!address.is_empty() && name.qpn >> 24 == 0).then_some(name)
        };
        parsed().ok_or_else(|| NameError(text.to_owned()))
    }
}

impl From<&Name> for Name {
    fn from(name: &Name) -> Self {
        name.clone()
    }
}

impl TryFrom<&str> for Name {
    type Error = NameError;

    fn try_from(text: &str) -> Result<Self, NameError> {
        text.parse()
    }
}

impl TryFrom<String> for Name {
    type Error = NameError;

    fn try_from(text: String) -> Result<Self, NameError> {
        text.parse()
    }
}

impl From<Infallible> for NameError {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_parsed_into_what_it_was_made_of() {
        for text in ["udp:[::1]:4791#2a.7f001234", "shm:a#b#1.00000000"] {
            let name: Name = text.parse().expect("a name");
            assert_eq!(name.to_string(), text);
        }
        for text in ["", "#1.2", "shm:a", "shm:a#1", "shm:a#x.1", "shm:a#1000000.1", "shm:a#1."] {
            text.parse::<Name>().expect_err("no name");
        }
    }
}
