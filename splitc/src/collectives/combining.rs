//! The encoding of values for collectives, and operators on encoded values.

use bytes::Bytes;
use zerocopy::IntoBytes as _;

use super::begun::{Mixed, Outcome};
use crate::element::Element;

/// Encodes values that are broadcast, gathered or scattered.
pub(super) fn bytes_of<T: Element>(values: &[T]) -> Bytes {
    Bytes::copy_from_slice(values.as_bytes())
}

/// Decodes values that another process gave; an error if the bytes are not whole values.
pub(super) fn values_of<T: Element>(bytes: &[u8]) -> Outcome<Vec<T>> {
    let size = size_of::<T>().max(1);
    if !bytes.len().is_multiple_of(size) {
        return Err(Mixed);
    }
    let mut values = T::new_vec_zeroed(bytes.len() / size).map_err(|_| Mixed)?;
    values.as_mut_slice().as_mut_bytes().copy_from_slice(bytes);
    Ok(values)
}

/// Decodes a single value that another process gave; an error if there is not exactly one.
pub(super) fn value_of<T: Element>(bytes: &[u8]) -> Outcome<T> {
    T::read_from_bytes(bytes).map_err(|_| Mixed)
}

/// The byte behind encoded values that are combined: `FITS`, or `MIXED` once values were combined
/// that do not fit together.
const FITS: u8 = 0;
const MIXED: u8 = 1;

/// Encodes values that are to be combined with values of other processes.
pub(super) fn to_combine<T: Element>(values: &[T]) -> Bytes {
    [values.as_bytes(), &[FITS]].concat().into()
}

/// Makes an operator on encoded values, element by element, of one on two values. If the lengths
/// differ, the result is `MIXED`.
pub(super) fn combine<T: Element>(
    mut operator: impl FnMut(T, T) -> T + Send + 'static,
) -> impl FnMut(&mut Vec<u8>, &[u8]) + Send + 'static {
    move |left, right| {
        let (Some((&FITS, ours)), Some((&FITS, theirs))) = (left.split_last(), right.split_last())
        else {
            *left = vec![MIXED];
            return;
        };
        let (Ok(mut ours), Ok(theirs)) = (values_of::<T>(ours), values_of::<T>(theirs)) else {
            *left = vec![MIXED];
            return;
        };
        if ours.len() != theirs.len() {
            *left = vec![MIXED];
            return;
        }
        for (one, other) in ours.iter_mut().zip(theirs) {
            *one = operator(*one, other);
        }
        let len = left.len() - 1;
        left[..len].copy_from_slice(ours.as_bytes());
    }
}

/// Decodes values that were combined; an error if they did not fit together.
pub(super) fn combined<T: Element>(bytes: &[u8]) -> Outcome<Vec<T>> {
    match bytes.split_last() {
        Some((&FITS, values)) => values_of(values),
        _ => Err(Mixed),
    }
}

/// Decodes a single value that was combined; an error if the values did not fit together.
pub(super) fn combined_one<T: Element>(bytes: &[u8]) -> Outcome<T> {
    match bytes.split_last() {
        Some((&FITS, value)) => value_of(value),
        _ => Err(Mixed),
    }
}
