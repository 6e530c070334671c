//! Element types: the values that shared memory can hold.

use zerocopy::{FromBytes, Immutable, IntoBytes};

/// A type that shared memory can hold: plain data, for which any bytes are a valid value.
///
/// Every type that has zerocopy's traits and can be copied is an element: numbers, arrays of
/// numbers, [`GlobalPtr`](crate::GlobalPtr), and structs of those without gaps:
///
/// ```
/// use doorbell_splitc::{Element, GlobalPtr};
/// use zerocopy::{FromBytes, Immutable, IntoBytes};
///
/// #[derive(Clone, Copy, FromBytes, IntoBytes, Immutable)]
/// #[repr(C)]
/// struct Node {
///     value: f64,
///     next: GlobalPtr<f64>,
/// }
///
/// fn is_element<T: Element>() {}
/// is_element::<Node>();
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` can't be held by shared memory",
    note = "numbers can, and structs of them with `#[derive(Clone, Copy, FromBytes, IntoBytes, \
            Immutable)]` and `#[repr(C)]`"
)]
pub trait Element: FromBytes + IntoBytes + Immutable + Copy + 'static {}

impl<T: FromBytes + IntoBytes + Immutable + Copy + 'static> Element for T {}
