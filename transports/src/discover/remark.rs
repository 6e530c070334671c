//! Remarks about what could be better.

/// A remark about something that could be better, and how.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Remark {
    /// The state that was found, in words.
    pub found: String,
    /// The advice to the user, in words.
    pub advice: String,
}

impl Remark {
    pub(super) fn new(found: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { found: found.into(), advice: advice.into() }
    }
}
