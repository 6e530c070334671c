//! The encoding of values for collectives, and operators on encoded values.
//!
//! Behind the values is a mark of what they are: their type and, where they are combined, the
//! operator. Processes that pass different ones find it out by that, also if the values have the
//! same length.

use bytes::Bytes;
use doorbell_collectives::Mark;
use zerocopy::IntoBytes as _;

use super::begun::{Mixed, Outcome};
use crate::element::Element;

/// Encodes values that are broadcast, gathered or scattered.
pub(super) fn bytes_of<T: Element>(values: &[T]) -> Bytes {
    Mark::of::<T>().put(values.as_bytes())
}

/// Decodes values that another process gave; an error if they are of another type.
pub(super) fn values_of<T: Element>(bytes: &[u8]) -> Outcome<Vec<T>> {
    values(marked::<T>(bytes)?)
}

/// Decodes a single value that another process gave; an error if there is not exactly one of this
/// type.
pub(super) fn value_of<T: Element>(bytes: &[u8]) -> Outcome<T> {
    T::read_from_bytes(marked::<T>(bytes)?).map_err(|_| Mixed)
}

/// The bytes of values; an error if their mark is that of another type.
fn marked<T: Element>(bytes: &[u8]) -> Outcome<&[u8]> {
    let (values, mark) = Mark::peel(bytes).ok_or(Mixed)?;
    Mark::of::<T>().meet(mark).map(|()| values).map_err(|_| Mixed)
}

/// The values of bytes that are a whole number of them.
fn values<T: Element>(bytes: &[u8]) -> Outcome<Vec<T>> {
    let size = size_of::<T>().max(1);
    if !bytes.len().is_multiple_of(size) {
        return Err(Mixed);
    }
    let mut values = T::new_vec_zeroed(bytes.len() / size).map_err(|_| Mixed)?;
    values.as_mut_slice().as_mut_bytes().copy_from_slice(bytes);
    Ok(values)
}

/// Encodes values that are to be combined with values of other processes by an operator. Values
/// that were combined and do not fit together have no bytes at all.
pub(super) fn to_combine<T: Element, O>(values: &[T], _operator: &O) -> Bytes {
    Mark::of_operator::<T, O>().put(values.as_bytes())
}

/// Makes an operator on encoded values, element by element, of one on two values. If the types, the
/// lengths or the operators differ, nothing is the result. Operators of the program's own count as
/// the same as any, since nobody can tell what they compute.
pub(super) fn combine<T: Element>(
    mut operator: impl FnMut(T, T) -> T + Send + 'static,
) -> impl FnMut(&mut Vec<u8>, &[u8]) + Send + 'static {
    move |left, right| {
        let Ok((values, mark)) = combined_values(left, right, &mut operator) else {
            return left.clear();
        };
        let values = values.as_bytes();
        left[..values.len()].copy_from_slice(values);
        left[values.len()..].copy_from_slice(&mark.to_bytes());
    }
}

/// Combines two rows of encoded values. Returns the result with the mark of both.
fn combined_values<T: Element>(
    left: &[u8],
    right: &[u8],
    operator: &mut impl FnMut(T, T) -> T,
) -> Outcome<(Vec<T>, Mark)> {
    let mut mark = Mark::of::<T>();
    let mut row = |bytes| {
        let (row, other) = Mark::peel(bytes).ok_or(Mixed)?;
        mark.meet(other).map_err(|_| Mixed)?;
        values::<T>(row)
    };
    let (mut ours, theirs) = (row(left)?, row(right)?);
    if ours.len() != theirs.len() {
        return Err(Mixed);
    }
    for (one, other) in ours.iter_mut().zip(theirs) {
        *one = operator(*one, other);
    }
    Ok((ours, mark))
}
