//! Errors in words, with what they came from.

use std::error::Error;
use std::iter::successors;

/// An error, and all that it came from.
pub(crate) fn causes<'w>(
    why: &'w (dyn Error + 'static),
) -> impl Iterator<Item = &'w (dyn Error + 'static)> {
    successors(Some(why), |why| (*why).source())
}

/// The text of an error and of what it came from. A cause that the text has already is not
/// repeated.
pub(crate) fn with_causes(why: &(dyn Error + 'static)) -> String {
    let mut said = String::new();
    for cause in causes(why) {
        let cause = cause.to_string();
        if said.is_empty() {
            said = cause;
        } else if !said.contains(&cause) {
            said = format!("{said}: {cause}");
        }
    }
    said
}
