use doorbell::am::Word;

use crate::derives::{take, there_and_back};

#[derive(Word, Clone, Copy, PartialEq, Debug)]
struct Key(u64);

#[derive(Word, Clone, Copy, PartialEq, Debug)]
struct Temperature {
    celsius: f64,
}

/// A word that is made of a word of the program's own.
#[derive(Word, Clone, Copy, PartialEq, Debug)]
struct Painted(Colour);

#[derive(Word, Clone, Copy, PartialEq, Debug)]
enum Colour {
    Red,
    Green = 7,
    Blue,
}

#[derive(Word, Clone, Copy, PartialEq, Debug)]
#[repr(i8)]
enum Sign {
    Minus = -1,
    None,
    Plus,
}

#[derive(Word, Clone, Copy, PartialEq, Debug)]
#[repr(u64)]
enum Edge {
    First,
    Last = u64::MAX,
}

#[derive(Word, Clone, Copy, PartialEq, Debug)]
enum Negative {
    Lowest = -0x8000_0000,
    Some = -7,
}

#[derive(Word, Clone, Copy, PartialEq, Debug)]
enum Empty {
    Braces {},
    Parentheses(),
}

#[derive(Word, Clone, Copy, PartialEq, Debug)]
#[allow(non_camel_case_types)]
struct r#type(r#enum);

#[derive(Word, Clone, Copy, PartialEq, Debug)]
#[allow(non_camel_case_types)]
enum r#enum {
    r#fn,
}

#[test]
fn a_struct_of_one_word_travels_as_this_word() {
    there_and_back(Key(7), &[7], b"");
    there_and_back(Temperature { celsius: -3.5 }, &[(-3.5_f64).to_bits()], b"");
    there_and_back(Painted(Colour::Blue), &[8], b"");
    assert_eq!(take::<Painted>(&[9], b""), None);
}

#[test]
fn a_variant_travels_as_its_discriminant() {
    there_and_back(Colour::Red, &[0], b"");
    there_and_back(Colour::Green, &[7], b"");
    there_and_back(Colour::Blue, &[8], b"");
    there_and_back(Edge::First, &[0], b"");
    there_and_back(Edge::Last, &[u64::MAX], b"");
    there_and_back(Empty::Braces {}, &[0], b"");
    there_and_back(Empty::Parentheses(), &[1], b"");
}

#[test]
fn a_negative_discriminant_is_the_word_that_a_negative_number_is() {
    there_and_back(Sign::Minus, &[(-1_i8).word()], b"");
    there_and_back(Sign::None, &[0], b"");
    there_and_back(Sign::Plus, &[1], b"");
    there_and_back(Negative::Lowest, &[(-0x8000_0000_isize).word()], b"");
    there_and_back(Negative::Some, &[(-7_isize).word()], b"");
}

#[test]
fn a_word_that_is_no_variant_is_no_value() {
    for no_colour in [1, 6, 9, 7 << 32, u64::MAX] {
        assert_eq!(Colour::from_word(no_colour), None, "{no_colour}");
    }
    assert_eq!(Sign::from_word(0xFF), None);
    assert_eq!(Sign::from_word(u64::MAX - 1), None);
}

#[test]
fn a_word_is_told_by_the_name_of_its_type() {
    assert_eq!(Key::KIND, "Key");
    assert_eq!(Temperature::KIND, "Temperature");
    assert_eq!(Colour::KIND, "Colour");
    assert_eq!(r#type::KIND, "type");
    there_and_back(r#type(r#enum::r#fn), &[0], b"");
}
