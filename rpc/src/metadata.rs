//! Metadata: names and values that travel with a call beside its body.

use std::fmt;
use std::str;

use bytes::{BufMut, Bytes, BytesMut};

/// The most bytes that the metadata of a message takes on the wire.
pub const MOST_METADATA: usize = 2048;

/// Names and values that travel with a request or a response beside the body, such as credentials
/// or the caller's trace.
///
/// Names are lower-case ASCII, and values are any bytes. A name may have several values. All pairs
/// together take at most [`MOST_METADATA`] bytes, with four bytes for each pair beside the name and
/// the value. A call with more metadata fails with
/// [`ResourceExhausted`](crate::Code::ResourceExhausted).
///
/// ```
/// use doorbell::rpc::Metadata;
///
/// let mut metadata = Metadata::new();
/// metadata.insert("user", "ann");
/// assert_eq!(metadata.text("user"), Some("ann"));
/// ```
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Metadata {
    pairs: Vec<(String, Bytes)>,
}

/// The error of metadata that was received and is malformed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "the metadata ends within a name or a value, a name is not ASCII in lower case, or the length of the \
     body is missing"
)]
pub struct MetadataError;

impl Metadata {
    /// Makes metadata without pairs, and allocates nothing.
    #[must_use]
    pub const fn new() -> Self {
        Self { pairs: Vec::new() }
    }

    /// Returns whether the metadata has no pairs.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    /// The first value of a name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Bytes> {
        self.all(name).next()
    }

    /// The first value of a name, if that is UTF-8.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<&str> {
        self.get(name).and_then(|value| str::from_utf8(value).ok())
    }

    /// Returns all values of a name, in their order.
    pub fn all<'m>(&'m self, name: &str) -> impl Iterator<Item = &'m Bytes> {
        self.pairs.iter().filter(move |(one, _)| one == name).map(|(_, value)| value)
    }

    /// Returns all pairs of names and values, in their order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Bytes)> {
        self.pairs.iter().map(|(name, value)| (&**name, value))
    }

    /// Sets the only value of a name, in place of all values that it has. The value is text, or
    /// bytes in any form.
    ///
    /// ```
    /// use doorbell::rpc::Metadata;
    ///
    /// let (user, key) = (String::from("ann"), [7_u8; 32]);
    /// let mut metadata = Metadata::new();
    /// metadata.insert("user", &user[..2]);
    /// metadata.insert("key", key.to_vec());
    /// assert_eq!(metadata.get("key").map(|key| key.len()), Some(32));
    /// ```
    ///
    /// # Panics
    /// When the name [is invalid](Self::is_name): empty, longer than 255 bytes, or with other
    /// characters than lower-case letters, digits, `-`, `_` and `.`.
    #[track_caller]
    pub fn insert(&mut self, name: &str, value: impl Into<Value>) {
        self.remove(name);
        self.append(name, value);
    }

    /// Whether a text may be a name of metadata. For programs that make names from foreign text.
    #[must_use]
    pub fn is_name(text: &str) -> bool {
        is_name(text)
    }

    /// Adds a value to those that the name has.
    ///
    /// # Panics
    /// When the name [is invalid](Self::is_name).
    #[track_caller]
    pub fn append(&mut self, name: &str, value: impl Into<Value>) {
        assert!(
            is_name(name),
            "`{}` is no name of metadata, which has from 1 to 255 lower-case letters, digits, `-`, `_` and \
             `.`",
            &name[..name.floor_char_boundary(255)]
        );
        self.pairs.push((name.to_owned(), value.into().0));
    }

    /// Removes all values of a name. Returns whether there were any.
    pub fn remove(&mut self, name: &str) -> bool {
        let before = self.pairs.len();
        self.pairs.retain(|(one, _)| one != name);
        before != self.pairs.len()
    }

    /// The number of bytes that the metadata takes on the wire.
    pub(crate) fn encoded_len(&self) -> usize {
        let lens = self.pairs.iter().map(|(name, value)| (name.len(), value.len()));
        lens.map(|(name, value)| Self::encoded_pair_len(name, value)).sum()
    }

    /// The number of bytes that one pair takes on the wire, from the lengths of its name and value.
    pub(crate) const fn encoded_pair_len(name: usize, value: usize) -> usize {
        4 + name + value
    }

    /// Appends the metadata to a message. Each pair is one byte with the length of the name, two
    /// with the length of the value, the name, the value, and a zero byte.
    pub(crate) fn encode(&self, into: &mut BytesMut) {
        for (name, value) in &self.pairs {
            into.put_u8(name.len() as u8);
            into.put_u16(value.len() as u16);
            into.put_slice(name.as_bytes());
            into.put_slice(value);
            into.put_u8(0);
        }
    }

    /// Reads metadata from all of `bytes`.
    pub(crate) fn decode(mut bytes: Bytes) -> Result<Self, MetadataError> {
        let mut pairs = Vec::new();
        while !bytes.is_empty() {
            if bytes.len() < 4 {
                return Err(MetadataError);
            }
            let name = usize::from(bytes[0]);
            let value = usize::from(u16::from_be_bytes([bytes[1], bytes[2]]));
            if bytes.len() < 4 + name + value || bytes[3 + name + value] != 0 {
                return Err(MetadataError);
            }
            let text = str::from_utf8(&bytes[3..3 + name]).map_err(|_| MetadataError)?;
            if !is_name(text) {
                return Err(MetadataError);
            }
            pairs.push((text.to_owned(), bytes.slice(3 + name..3 + name + value)));
            bytes = bytes.slice(4 + name + value..);
        }
        Ok(Self { pairs })
    }
}

fn is_name(name: &str) -> bool {
    let is_allowed =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_.".contains(&byte);
    !name.is_empty() && name.len() <= 255 && name.bytes().all(is_allowed)
}

impl fmt::Debug for Metadata {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

/// A value of metadata, made from text or from bytes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Value(Bytes);

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self(Bytes::copy_from_slice(text.as_bytes()))
    }
}

impl From<&String> for Value {
    fn from(text: &String) -> Self {
        Self::from(text.as_str())
    }
}

impl From<&[u8]> for Value {
    fn from(bytes: &[u8]) -> Self {
        Self(Bytes::copy_from_slice(bytes))
    }
}

impl<const N: usize> From<&[u8; N]> for Value {
    fn from(bytes: &[u8; N]) -> Self {
        Self(Bytes::copy_from_slice(bytes))
    }
}

impl From<Vec<u8>> for Value {
    fn from(bytes: Vec<u8>) -> Self {
        Self(bytes.into())
    }
}

impl From<BytesMut> for Value {
    fn from(bytes: BytesMut) -> Self {
        Self(bytes.freeze())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self(text.into())
    }
}

impl From<Bytes> for Value {
    fn from(bytes: Bytes) -> Self {
        Self(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_that_was_encoded_is_decoded_with_all_values_of_a_name() {
        let mut metadata = Metadata::new();
        metadata.append("user", "ann");
        metadata.append("role", "reader");
        metadata.append("role", Bytes::from_static(&[0, 255]));
        let mut bytes = BytesMut::new();
        metadata.encode(&mut bytes);
        assert_eq!(bytes.len(), metadata.encoded_len());
        let decoded = Metadata::decode(bytes.freeze()).expect("it was encoded");
        assert_eq!(decoded, metadata);
        assert_eq!(decoded.all("role").count(), 2);
    }

    #[test]
    fn values_are_made_of_text_and_of_bytes_in_every_form() {
        let (text, bytes) = (String::from("ann"), b"ann".to_vec());
        let values: [Value; 8] = [
            "ann".into(),
            text.as_str().into(),
            (&text).into(),
            bytes.as_slice().into(),
            b"ann".into(),
            BytesMut::from(&b"ann"[..]).into(),
            Bytes::from(bytes.clone()).into(),
            bytes.into(),
        ];
        assert!(values.iter().all(|value| *value == Value::from(text.clone())));
    }

    #[test]
    #[should_panic(expected = "`User` is no name of metadata, which has from 1 to 255 lower-case")]
    fn a_name_that_is_none_panics_and_says_what_names_are() {
        assert!(Metadata::is_name("user") && !Metadata::is_name("User") && !Metadata::is_name(""));
        Metadata::new().insert("User", "ann");
    }

    #[test]
    fn metadata_that_is_cut_off_is_an_error() {
        let mut metadata = Metadata::new();
        metadata.append("user", "ann");
        let mut bytes = BytesMut::new();
        metadata.encode(&mut bytes);
        let bytes = bytes.freeze();
        for len in 1..bytes.len() {
            assert_eq!(Metadata::decode(bytes.slice(..len)), Err(MetadataError), "{len}");
        }
    }
}
