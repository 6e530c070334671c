use bytes::Bytes;
use doorbell::am::{Arguments, Plain, Word};
use zerocopy::{FromBytes, Immutable, IntoBytes};

use crate::derives::{take, there_and_back};

#[derive(Arguments, PartialEq, Debug)]
struct Put {
    key: u64,
    change: i8,
    value: Bytes,
}

#[derive(Arguments, PartialEq, Debug)]
struct Move(u32, f64);

#[derive(Arguments, PartialEq, Debug)]
struct Stop;

#[derive(Arguments, PartialEq, Debug)]
struct StopToo {}

#[derive(Arguments, PartialEq, Debug)]
struct Log {
    text: String,
}

#[derive(Word, Clone, Copy, PartialEq, Debug)]
enum Colour {
    Red,
    Green,
}

#[derive(Plain, FromBytes, IntoBytes, Immutable, Clone, Copy, PartialEq, Debug)]
#[repr(C)]
struct Point {
    x: u16,
    y: u16,
}

#[derive(Arguments, PartialEq, Debug)]
struct Paint {
    colour: Colour,
    at: Point,
}

#[derive(Arguments, PartialEq, Debug)]
struct Draw {
    r#type: u8,
    line: std::vec::Vec<Point>,
}

#[derive(Arguments, PartialEq, Debug)]
#[rustfmt::skip]
struct Twenty(
    u8, u8, u8, u8, u8, u8, u8, u8, u8, u8, u8, u8, u8, u8, u8, u8, u8, u8, u8, bool,
);

#[test]
fn the_fields_of_a_struct_are_words_in_their_order_and_the_last_may_be_the_payload() {
    let put = Put { key: 7, change: -1, value: Bytes::from_static(b"seven") };
    there_and_back(put, &[7, u64::MAX], b"seven");
    there_and_back(Move(3, 0.5), &[3, 0.5_f64.to_bits()], b"");
    there_and_back(Log { text: "ä".to_owned() }, &[], "ä".as_bytes());
    there_and_back(Paint { colour: Colour::Green, at: Point { x: 1, y: 1 } }, &[1], &{
        let [low, high] = 1_u16.to_ne_bytes();
        [low, high, low, high]
    });
    there_and_back(Draw { r#type: 2, line: vec![Point { x: 0, y: 0 }; 3] }, &[2], &[0; 12]);
}

#[test]
fn a_struct_without_fields_travels_as_nothing() {
    there_and_back(Stop, &[], b"");
    there_and_back(StopToo {}, &[], b"");
}

#[test]
fn a_struct_may_have_more_than_sixteen_words() {
    let twenty = Twenty(1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, true);
    there_and_back(twenty, &[1; 20], b"");
}

#[test]
fn a_struct_says_whether_its_last_field_is_a_payload() {
    const { assert!(Put::HAS_PAYLOAD && Log::HAS_PAYLOAD && Paint::HAS_PAYLOAD) };
    const { assert!(!Move::HAS_PAYLOAD && !Stop::HAS_PAYLOAD && !Twenty::HAS_PAYLOAD) };
}

#[test]
fn too_few_and_too_many_words_are_no_value() {
    assert_eq!(take::<Put>(&[7], b""), None);
    assert_eq!(take::<Put>(&[7, 0, 0], b""), None);
    assert_eq!(take::<Move>(&[3], b""), None);
    assert_eq!(take::<Move>(&[3, 0, 0], b""), None);
    assert_eq!(take::<Stop>(&[0], b""), None);
    assert_eq!(take::<Log>(&[0], b""), None);
}

#[test]
fn a_field_that_is_no_value_of_its_type_makes_the_struct_none() {
    assert_eq!(take::<Put>(&[7, 1 << 8], b""), None);
    assert_eq!(take::<Move>(&[1 << 32, 0], b""), None);
    assert_eq!(take::<Log>(&[], b"\xFF"), None);
    assert_eq!(take::<Paint>(&[2], &[0; 4]), None);
    assert_eq!(take::<Paint>(&[1], &[0; 5]), None);
}

#[test]
fn the_name_of_a_struct_has_its_fields_as_they_are_written() {
    assert_eq!(Put::type_name(), "Put { key: u64, change: i8, value: Bytes }");
    assert_eq!(Move::type_name(), "Move(u32, f64)");
    assert_eq!(Stop::type_name(), "Stop");
    assert_eq!(StopToo::type_name(), "StopToo");
    assert_eq!(Draw::type_name(), "Draw { type: u8, line: std::vec::Vec<Point> }");
}
