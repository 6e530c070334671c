//! Checks that several bodies make.

use std::fmt::{self, Debug, Write};

/// A slice that a parser returned lies within what the parser was given. Returns where it begins.
#[track_caller]
pub fn inside(whole: &[u8], part: &[u8]) -> usize {
    let (whole, part) = (whole.as_ptr_range(), part.as_ptr_range());
    assert!(whole.start <= part.start && part.end <= whole.end, "a slice from outside the input");
    part.start as usize - whole.start as usize
}

/// The slice is what remains of the input from `at` on, but for `cut` bytes at its end.
#[track_caller]
pub fn is_rest(whole: &[u8], rest: &[u8], at: usize) -> usize {
    assert_eq!(inside(whole, rest), at);
    whole.len() - at - rest.len()
}

/// A value, or the reason why there is none, can be shown: logs do that with what peers sent.
pub fn can_be_shown(value: &impl Debug) {
    struct Nowhere;
    impl Write for Nowhere {
        fn write_str(&mut self, _: &str) -> fmt::Result {
            Ok(())
        }
    }
    write!(Nowhere, "{value:?}").expect("nowhere is never full");
}
