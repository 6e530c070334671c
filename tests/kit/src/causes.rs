//! Errors and their causes, as a program shows them.

use std::error::Error;

/// An error with its causes, in the order in which `{:#}` of anyhow shows them.
///
/// # Panics
/// When an error names its cause in its own text: that would be shown twice.
#[track_caller]
pub fn chain(error: &dyn Error) -> String {
    let mut texts: Vec<String> = Vec::new();
    let mut next = Some(error);
    while let Some(error) = next {
        let text = error.to_string();
        for before in &texts {
            assert!(!before.contains(&text), "`{text}` is the cause of `{before}`, and in it");
        }
        texts.push(text);
        next = error.source();
    }
    texts.join(": ")
}
