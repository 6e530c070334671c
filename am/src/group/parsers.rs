//! The parsers of the words of a group's messages, for the fuzz targets.

use crate::group::wire::{Label, failure_of_words, words_of_failure};

/// Reads the label of a message among so many members, and returns the word that a member would
/// have written.
pub fn label(word: u64, members: usize) -> Option<u64> {
    Label::from_word(word, members).map(Label::word)
}

/// Reads a notice of a failure among so many members, and returns what a member would have written:
/// the rank with the cause, the last collective that is not concerned, the details, and the text.
pub fn failure(words: [u64; 4], text: String, members: usize) -> Option<([u64; 4], String)> {
    let [word, after, first, second] = words;
    let failure = failure_of_words(word, after, [first, second], text, members)?;
    let (_, word, after, first, second, text) = words_of_failure(0, &failure);
    Some(([word, after, first, second], text))
}
