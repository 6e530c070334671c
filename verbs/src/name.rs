//! Names, by which peers find listeners and endpoints.

use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use doorbell_core::wire::ServiceId;
use thiserror::Error;

/// The name of a [listener](crate::Listener), or of an endpoint of a floor above: the address of
/// its NIC, and its service number there. As text, a name can be handed to any process that is to
/// connect.
///
/// ```
/// use doorbell_verbs::Name;
///
/// let name: Name = "shm:job/1#000000000000002a".parse()?;
/// assert_eq!(name, Name::at("shm:job/1", 42));
/// # Ok::<(), doorbell_verbs::NameError>(())
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Name {
    address: Arc<str>,
    service: u64,
}

/// The error of text that is no name.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error(
    "`{0}` is no name: a name is ADDRESS#SERVICE, with the service in hexadecimal, as in \
     `udp:192.0.2.7:4791#2a`"
)]
pub struct NameError(String);

impl Name {
    /// Makes the name of what listens to this service at an address.
    pub fn at(address: impl Into<Arc<str>>, service: u64) -> Self {
        Self { address: address.into(), service }
    }

    /// Returns the address of the NIC.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Returns the address, to be shared by many names. For layers of this workspace.
    #[doc(hidden)]
    pub fn shared_address(&self) -> &Arc<str> {
        &self.address
    }

    /// Returns the number of the service.
    pub fn service(&self) -> ServiceId {
        ServiceId(self.service)
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}#{:016x}", self.address, self.service)
    }
}

impl FromStr for Name {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        let parsed = || {
            let (address, service) = text.rsplit_once('#')?;
            let service = u64::from_str_radix(service, 16).ok()?;
            (!address.is_empty()).then(|| Self::at(address, service))
        };
        parsed().ok_or_else(|| NameError(text.to_owned()))
    }
}

#[cfg(feature = "serde")]
impl serde::Serialize for Name {
    /// Serializes the name as text.
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(feature = "serde")]
impl<'de> serde::Deserialize<'de> for Name {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
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

impl TryFrom<&String> for Name {
    type Error = NameError;

    fn try_from(text: &String) -> Result<Self, NameError> {
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
    fn a_name_is_read_as_it_is_written() {
        for address in ["udp:[::1]:4791", "packet:02:00:00:00:00:01", "shm:a#b"] {
            let name = Name::at(address, u64::MAX);
            assert_eq!(name.to_string().parse(), Ok(name));
        }
        for text in ["", "#1", "shm:a", "shm:a#", "shm:a#x"] {
            assert!(text.parse::<Name>().is_err(), "{text}");
        }
    }

    #[cfg(feature = "serde")]
    #[test]
    fn a_name_is_text_in_files() {
        let name = Name::at("shm:a#b", 7);
        let text = serde_json::to_string(&name).expect("it is text");
        assert_eq!(text, r#""shm:a#b#0000000000000007""#);
        assert_eq!(serde_json::from_str::<Name>(&text).expect("it was written"), name);
        assert!(serde_json::from_str::<Name>("\"shm:a\"").is_err());
    }
}
