//! Metadata: names and values that travel with a call beside its body.

use std::fmt;
use std::str;

use bytes::{BufMut, Bytes, BytesMut};

/// The most bytes that the metadata of a message takes on the wire.
pub const MOST_METADATA: usize = 2048;

/// Names and values that travel with a request or a response beside the body, such as credentials
/// or the caller's trace.
///
/// Names are those of HTTP headers in lower case, and values are any bytes. A name may have several
/// values. All pairs
/// together take at most [`MOST_METADATA`] bytes, with four bytes for each pair beside the name and
/// the value. A call with more metadata fails with
/// [`ResourceExhausted`](crate::Code::ResourceExhausted).
///
/// ```
/// use doorbell_rpc::Metadata;
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

/// The error of a text that is no name of metadata.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "`{0}` is no name of metadata, which has from 1 to 255 lower-case letters, digits, and characters of \
     `!#$%&'*+-.^_`|~`"
)]
pub struct InvalidName(
    /// The text, or its beginning if it is long.
    String,
);

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
    /// bytes in any form. The name is a literal of the program; a name that the program has been
    /// given is for [`try_insert`](Self::try_insert).
    ///
    /// ```
    /// use doorbell_rpc::Metadata;
    ///
    /// let (user, key) = (String::from("ann"), [7_u8; 32]);
    /// let mut metadata = Metadata::new();
    /// metadata.insert("user", &user[..2]);
    /// metadata.insert("key", key.to_vec());
    /// assert_eq!(metadata.get("key").map(|key| key.len()), Some(32));
    /// ```
    ///
    /// # Panics
    /// When the literal [is no name](Self::is_name).
    #[track_caller]
    pub fn insert(&mut self, name: &'static str, value: impl Into<Value>) {
        self.try_insert(name, value).unwrap_or_else(|why| panic!("{why}"));
    }

    /// Adds a value to those that the name has. The name is a literal of the program; a name that
    /// the program has been given is for [`try_append`](Self::try_append).
    ///
    /// # Panics
    /// When the literal [is no name](Self::is_name).
    #[track_caller]
    pub fn append(&mut self, name: &'static str, value: impl Into<Value>) {
        self.try_append(name, value).unwrap_or_else(|why| panic!("{why}"));
    }

    /// Sets the only value of a name that the program has been given, such as that of a header
    /// which it passes on, in place of all values that the name has.
    ///
    /// ```
    /// use doorbell_rpc::Metadata;
    ///
    /// let mut metadata = Metadata::new();
    /// for (name, value) in [("x-request-id", "7"), ("Not A Name", "8")] {
    ///     if let Err(why) = metadata.try_insert(name, value) {
    ///         assert!(why.to_string().starts_with("`Not A Name` is no name of metadata"));
    ///     }
    /// }
    /// assert_eq!(metadata.text("x-request-id"), Some("7"));
    /// ```
    ///
    /// # Errors
    /// When the text [is no name](Self::is_name). The metadata stays as it was.
    pub fn try_insert(&mut self, name: &str, value: impl Into<Value>) -> Result<(), InvalidName> {
        let name = parsed(name)?;
        self.remove(&name);
        self.pairs.push((name, value.into().0));
        Ok(())
    }

    /// Adds a value to those that a name has which the program has been given.
    ///
    /// # Errors
    /// When the text [is no name](Self::is_name). The metadata stays as it was.
    pub fn try_append(&mut self, name: &str, value: impl Into<Value>) -> Result<(), InvalidName> {
        self.pairs.push((parsed(name)?, value.into().0));
        Ok(())
    }

    /// Whether a text may be a name of metadata: from 1 to 255 lower-case letters, digits, and
    /// characters of ``!#$%&'*+-.^_`|~``. Those are the names of headers in HTTP/2.
    #[must_use]
    pub fn is_name(text: &str) -> bool {
        is_name(text)
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

/// The characters of names that are neither letters nor digits: those of a token in HTTP.
const SIGNS: &[u8] = b"!#$%&'*+-.^_`|~";

fn parsed(name: &str) -> Result<String, InvalidName> {
    match is_name(name) {
        true => Ok(name.to_owned()),
        false => Err(InvalidName(name[..name.floor_char_boundary(255)].to_owned())),
    }
}

fn is_name(name: &str) -> bool {
    let is_allowed =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || SIGNS.contains(&byte);
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
    fn a_literal_that_is_no_name_panics_and_says_what_names_are() {
        Metadata::new().insert("User", "ann");
    }

    #[test]
    fn a_foreign_text_that_is_no_name_is_an_error_and_leaves_the_metadata_as_it_was() {
        let mut metadata = Metadata::new();
        metadata.insert("user", "ann");
        let before = metadata.clone();
        let long = "ü".repeat(200);
        for text in ["", "User", "x y", "ä", ":path", "a\0", "a\n", &long, &"a".repeat(256)] {
            assert!(!Metadata::is_name(text), "{text}");
            let inserted = metadata.try_insert(text, "eve").expect_err("it is no name");
            assert_eq!(metadata.try_append(text, "eve"), Err(inserted.clone()));
            let shown = inserted.to_string();
            assert!(shown.contains("is no name of metadata") && shown.len() < 400, "{shown}");
        }
        assert_eq!(metadata, before);
    }

    #[test]
    fn every_name_of_a_header_in_http_2_is_a_name_and_is_decoded_again() {
        let mut metadata = Metadata::new();
        for name in ["x-request-id", "!#$%&'*+-.^_`|~", "0", &"a".repeat(255)] {
            metadata.try_append(name, "7").expect("it is a name");
        }
        let mut bytes = BytesMut::new();
        metadata.encode(&mut bytes);
        assert_eq!(Metadata::decode(bytes.freeze()), Ok(metadata));
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
