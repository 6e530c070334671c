//! Prose in lines of a width, and texts that fill a width.

use crate::words;

/// The widest line of prose.
const PROSE: usize = 100;

/// Prose, with proper minus signs, in lines of `width` at most, or of the words' own lengths where
/// these are longer. Each line begins with `indent`. Without any word the text is empty.
pub fn wrapped(prose: &str, width: usize, indent: &str) -> String {
    let room = width.min(PROSE).saturating_sub(indent.chars().count());
    let mut text = String::new();
    let mut used = 0;
    for word in words::with_minus_signs(prose).split_whitespace() {
        let length = word.chars().count();
        if used > 0 && used + 1 + length <= room {
            text.push(' ');
            used += 1 + length;
        } else {
            text += if used > 0 { "\n" } else { "" };
            text += indent;
            used = length;
        }
        text += word;
    }
    if used > 0 {
        text.push('\n');
    }
    text
}

/// A text followed by spaces up to a width.
pub fn padded(text: &str, width: usize) -> String {
    text.to_owned() + &" ".repeat(width.saturating_sub(text.chars().count()))
}
