use doorbell::am::{Arguments, Field, Plain};
use zerocopy::{FromBytes, Immutable, IntoBytes};

use crate::derives::{take, there_and_back};

#[derive(Plain, FromBytes, IntoBytes, Immutable, Clone, Copy, PartialEq, Debug)]
#[repr(C)]
struct Point {
    x: f64,
    y: f64,
}

#[derive(Plain, FromBytes, IntoBytes, Immutable, Clone, Copy, PartialEq, Debug)]
#[repr(C)]
struct Line(Point, Point);

#[derive(Plain, FromBytes, IntoBytes, Immutable, Clone, Copy, PartialEq, Debug)]
#[repr(transparent)]
struct Address {
    r#type: [u8; 6],
}

const LINE: Line = Line(Point { x: 0.0, y: 1.0 }, Point { x: 2.0, y: 3.0 });

fn bytes_of(numbers: [f64; 4]) -> Vec<u8> {
    numbers.into_iter().flat_map(f64::to_ne_bytes).collect()
}

#[test]
fn plain_data_travels_as_its_bytes_in_memory_alone_and_in_rows() {
    let bytes = bytes_of([0.0, 1.0, 2.0, 3.0]);
    there_and_back(LINE, &[], &bytes);
    there_and_back(vec![LINE, LINE], &[], &[bytes.clone(), bytes.clone()].concat());
    there_and_back(vec![LINE.0, LINE.1].into_boxed_slice(), &[], &bytes);
    there_and_back(Address { r#type: *b"abcdef" }, &[], b"abcdef");
}

#[test]
fn bytes_of_another_length_and_words_are_no_plain_data() {
    assert_eq!(take::<Point>(&[], &[0; 15]), None);
    assert_eq!(take::<Point>(&[], &[0; 17]), None);
    assert_eq!(take::<Point>(&[0], &[0; 16]), None);
}

#[test]
fn plain_data_is_told_by_its_name_and_its_fields_as_they_are_written() {
    assert_eq!(Point::KIND, "Point { x: f64, y: f64 }");
    assert_eq!(Line::KIND, "Line(Point, Point)");
    assert_eq!(Address::KIND, "Address { type: [u8; 6] }");
    assert_eq!(<Line as Arguments>::type_name(), Line::KIND);
}

#[test]
fn plain_data_is_a_payload() {
    const { assert!(<Point as Field>::WORDS == 0 && <Point as Arguments>::HAS_PAYLOAD) };
}
