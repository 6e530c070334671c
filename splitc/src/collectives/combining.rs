//! The encoding of values for collectives, and operators on encoded values.
//!
//! Behind the values is a mark of what they are: their type and, where they are combined, the
//! operator. Processes that pass different ones find it out by that, also if the values have the
//! same length.

use std::any::type_name;
use std::hash::{DefaultHasher, Hasher};

use bytes::Bytes;
use zerocopy::IntoBytes as _;

use super::begun::{Mixed, Outcome};
use super::operators;
use crate::element::Element;

/// How many bytes the mark of a type takes.
const OF_TYPE: usize = 4;

/// A mark of the type of values.
fn of_type<T>() -> [u8; OF_TYPE] {
    let mut hasher = DefaultHasher::new();
    hasher.write(type_name::<T>().as_bytes());
    (hasher.finish() as u32).to_le_bytes()
}

/// Encodes values that are broadcast, gathered or scattered.
pub(super) fn bytes_of<T: Element>(values: &[T]) -> Bytes {
    [values.as_bytes(), &of_type::<T>()].concat().into()
}

/// Decodes values that another process gave; an error if they are of another type.
pub(super) fn values_of<T: Element>(bytes: &[u8]) -> Outcome<Vec<T>> {
    let bytes = bytes.strip_suffix(&of_type::<T>()).ok_or(Mixed)?;
    let size = size_of::<T>().max(1);
    if !bytes.len().is_multiple_of(size) {
        return Err(Mixed);
    }
    let mut values = T::new_vec_zeroed(bytes.len() / size).map_err(|_| Mixed)?;
    values.as_mut_slice().as_mut_bytes().copy_from_slice(bytes);
    Ok(values)
}

/// Decodes a single value that another process gave; an error if there is not exactly one of this
/// type.
pub(super) fn value_of<T: Element>(bytes: &[u8]) -> Outcome<T> {
    let bytes = bytes.strip_suffix(&of_type::<T>()).ok_or(Mixed)?;
    T::read_from_bytes(bytes).map_err(|_| Mixed)
}

/// Encodes values that are to be combined with values of other processes by an operator. Values
/// that were combined and do not fit together have no bytes at all.
pub(super) fn to_combine<T: Element, O>(values: &[T], _operator: &O) -> Bytes {
    let operator = operators::number(type_name::<O>());
    [values.as_bytes(), &of_type::<T>(), &[operator]].concat().into()
}

/// Makes an operator on encoded values, element by element, of one on two values. If the types, the
/// lengths or the operators differ, nothing is the result. Operators of the program's own count as
/// the same as any, since nobody can tell what they compute.
pub(super) fn combine<T: Element>(
    mut operator: impl FnMut(T, T) -> T + Send + 'static,
) -> impl FnMut(&mut Vec<u8>, &[u8]) + Send + 'static {
    move |left, right| {
        let combined = split::<T>(left).zip(split::<T>(right));
        let combined = combined.filter(|((ours, one), (theirs, other))| {
            let alike = one == other || *one == operators::ANY || *other == operators::ANY;
            ours.len() == theirs.len() && alike
        });
        let Some(((mut ours, one), (theirs, other))) = combined else { return left.clear() };
        for (one, other) in ours.iter_mut().zip(theirs) {
            *one = operator(*one, other);
        }
        let values = ours.as_bytes();
        left[..values.len()].copy_from_slice(values);
        left[values.len() + OF_TYPE] = one.max(other);
    }
}

/// The values of encoded ones, and the number of their operator; `None` if they are of another type
/// or do not fit together.
fn split<T: Element>(bytes: &[u8]) -> Option<(Vec<T>, u8)> {
    let (&operator, values) = bytes.split_last()?;
    Some((values_of(values).ok()?, operator))
}

/// Decodes values that were combined; an error if they did not fit together.
pub(super) fn combined<T: Element>(bytes: &[u8]) -> Outcome<Vec<T>> {
    split(bytes).map(|(values, _)| values).ok_or(Mixed)
}

/// Decodes a single value that was combined; an error if the values did not fit together.
pub(super) fn combined_one<T: Element>(bytes: &[u8]) -> Outcome<T> {
    let (_, value) = bytes.split_last().ok_or(Mixed)?;
    value_of(value)
}
