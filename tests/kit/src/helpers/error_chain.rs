//! An error and its causes, as programs show them.

use std::error::Error;

/// The texts of an error and its causes, in the order in which `{:#}` of anyhow shows them.
///
/// # Panics
/// When an error's own text has the text of its cause, which would then be shown twice.
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
