use bytes::Bytes;
use doorbell::am::{Arguments, Field, Plain, Shape};
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// Structs of which each differs from the first in one thing that endpoints must see.
macro_rules! versions {
    ($($version:ident { $($item:item)+ })+) => {$(
        mod $version {
            #[allow(unused_imports)]
            use super::*;

            $(#[derive(Arguments)] #[allow(dead_code)] $item)+
        }
    )+};
}

versions! {
    first { pub struct Put { key: u64, value: Bytes } }
    same { pub struct Put { key: ::core::primitive::u64, value: bytes::Bytes } }
    other_name { pub struct Insert { key: u64, value: Bytes } }
    other_field { pub struct Put { id: u64, value: Bytes } }
    other_word { pub struct Put { key: i64, value: Bytes } }
    other_payload { pub struct Put { key: u64, value: String } }
    no_payload { pub struct Put { key: u64, value: u64 } }
    more { pub struct Put { key: u64, more: u64, value: Bytes } }
    less { pub struct Put { key: u64 } }
    numbered { pub struct Put(u64, Bytes); }
    nothing { pub struct Put; }
}

#[test]
fn structs_are_told_apart_by_their_names_and_by_the_names_and_types_of_their_fields() {
    let shapes = [
        first::Put::SHAPE,
        other_name::Insert::SHAPE,
        other_field::Put::SHAPE,
        other_word::Put::SHAPE,
        other_payload::Put::SHAPE,
        no_payload::Put::SHAPE,
        more::Put::SHAPE,
        less::Put::SHAPE,
        numbered::Put::SHAPE,
        nothing::Put::SHAPE,
        Shape::of("").and("u64").with(Bytes::SHAPE_OF_FIELD), // of a tuple
    ];
    for (at, shape) in shapes.iter().enumerate() {
        assert!(!shapes[..at].contains(shape), "number {at}");
    }
}

#[test]
fn the_module_of_a_struct_and_the_paths_of_its_types_do_not_matter() {
    assert_eq!(first::Put::SHAPE, same::Put::SHAPE);
}

#[test]
fn the_shape_of_a_struct_is_made_of_its_parts() {
    let (key, value) =
        (Shape::of("struct").and("Put").and("key").and("u64"), Bytes::SHAPE_OF_FIELD);
    assert_eq!(first::Put::SHAPE, key.and("value").with(value));
    assert_eq!(nothing::Put::SHAPE, Shape::of("struct").and("Put"));
    let last_word = Shape::of("struct").and("Put").and("key").with(u64::SHAPE_OF_FIELD);
    assert_eq!(less::Put::SHAPE, last_word);
}

/// A name for the shape of a field that is not ambiguous.
trait OfField: Field {
    const SHAPE_OF_FIELD: Shape = <Self as Field>::SHAPE;
}

impl<F: Field> OfField for F {}

mod plain {
    use super::*;

    #[derive(Plain, FromBytes, IntoBytes, Immutable, Clone, Copy)]
    #[repr(C)]
    pub struct Point {
        x: f64,
        y: f64,
    }
}

mod other_plain {
    use super::*;

    #[derive(Plain, FromBytes, IntoBytes, Immutable, Clone, Copy)]
    #[repr(C)]
    pub struct Point {
        x: u64,
        y: u64,
    }
}

#[test]
fn plain_data_is_told_apart_by_the_types_of_its_fields() {
    assert_ne!(plain::Point::SHAPE_OF_FIELD, other_plain::Point::SHAPE_OF_FIELD);
    let rows = [Vec::<plain::Point>::SHAPE_OF_FIELD, Vec::<other_plain::Point>::SHAPE_OF_FIELD];
    assert_ne!(rows[0], rows[1]);
    assert_ne!(rows[0], plain::Point::SHAPE_OF_FIELD);
}
