//! Bytes as hexadecimal digits.

use std::fmt::{self, Write};

use zeroize::Zeroizing;

/// Bytes that are displayed as lower-case hexadecimal digits.
pub(crate) struct Hex<'b>(pub &'b [u8]);

impl fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Returns the digits of a secret, in memory that is overwritten with zeros when it is dropped.
pub(crate) fn encode_secret(bytes: &[u8; 32]) -> Zeroizing<String> {
    // With room for all digits from the start, the text is never moved, and leaves no copy behind.
    let mut text = Zeroizing::new(String::with_capacity(64));
    let _ = write!(*text, "{}", Hex(bytes));
    text
}

/// Returns the 32 bytes that 64 hexadecimal digits stand for, or `None` if the text is not that.
pub(crate) fn decode(text: &str) -> Option<Zeroizing<[u8; 32]>> {
    let mut bytes = Zeroizing::new([0; 32]);
    if text.len() != 64 {
        return None;
    }
    for (byte, digits) in bytes.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
        *byte = pair(digits)?;
    }
    Some(bytes)
}

/// Returns the byte that two digits stand for.
fn pair(digits: &[u8]) -> Option<u8> {
    let &[high, low] = digits else { return None };
    let digit = |digit: u8| char::from(digit).to_digit(16).and_then(|d| u8::try_from(d).ok());
    Some(digit(high)? << 4 | digit(low)?)
}

/// Returns the bytes that any even number of digits stand for.
#[cfg(test)]
pub(crate) fn decode_vec(text: &str) -> Option<Vec<u8>> {
    text.as_bytes().chunks(2).map(pair).collect()
}
