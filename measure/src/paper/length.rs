//! How long the measurements of a report are.

/// How long measurements are, and how often they are repeated.
#[derive(Clone, Copy, Debug)]
pub enum Length {
    /// As long as it takes for intervals to be narrow.
    Full,
    /// Shorter, with wider intervals.
    Quick,
    /// Only long enough to show that everything can be measured. What is found tells nothing.
    Brief,
}

impl Length {
    /// Returns the value for measurements of this length.
    pub fn choose<T>(self, of: Of<T>) -> T {
        match self {
            Self::Full => of.full,
            Self::Quick => of.quick,
            Self::Brief => of.brief,
        }
    }
}

/// A value for each length.
#[derive(Clone, Copy, Debug)]
pub struct Of<T> {
    pub full: T,
    pub quick: T,
    pub brief: T,
}
