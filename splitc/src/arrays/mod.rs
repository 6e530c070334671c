//! Arrays that are distributed over the processes of a world.
//!
//! `spread` and `matrix` turn an index into a pointer, by the rules of `layout`. `indexed` gathers
//! and scatters many elements by their indices. `allocation` is the memory below: the same range of
//! every process's heap, allocated, made private and freed by all processes together. `private`
//! lends a process its own part as a slice, and `sys` does so without a copy, by a contract. The
//! folder uses worlds and accesses, and neither knows of arrays.

mod allocation;
mod indexed;
mod layout;
mod matrix;
mod private;
mod spread;
#[allow(unsafe_code)]
mod sys;

pub(crate) use allocation::hash;
pub use matrix::Matrix;
pub use private::Private;
pub use spread::Spread;
