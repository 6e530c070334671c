use std::fmt::Debug;

use bytes::Bytes;
use doorbell::am::{Arguments, Field, Plain, Word};

use crate::derives::{take, there_and_back};

#[derive(Arguments, PartialEq, Debug)]
struct Pair<T> {
    left: T,
    right: T,
}

/// A struct with conditions of its own, whose parameter is inside the types of the fields.
#[derive(Arguments, PartialEq, Debug)]
struct Samples<K: Debug, T = u16>
where
    T: Plain + Debug,
{
    kind: K,
    rate: f64,
    samples: Vec<T>,
}

/// A word of a number of bits that the type says.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Bits<const COUNT: u32>(u64);

impl<const COUNT: u32> Word for Bits<COUNT> {
    const KIND: &'static str = "bits";

    fn word(self) -> u64 {
        self.0
    }

    fn from_word(word: u64) -> Option<Self> {
        (word.checked_shr(COUNT) == Some(0)).then_some(Self(word))
    }
}

#[derive(Arguments, PartialEq, Debug)]
struct Masked<const COUNT: u32>(Bits<COUNT>, Bits<8>);

#[test]
fn a_struct_with_parameters_travels_if_its_fields_are_words_and_a_payload() {
    there_and_back(Pair { left: 1_u8, right: 2 }, &[1, 2], b"");
    there_and_back(Pair { left: true, right: false }, &[1, 0], b"");
    there_and_back(Samples { kind: 'a', rate: 0.0, samples: vec![7_u8] }, &[97, 0], &[7]);
    there_and_back(Masked(Bits::<4>(15), Bits(255)), &[15, 255], b"");
    assert_eq!(take::<Masked<4>>(&[16, 255], b""), None);
}

#[test]
fn instances_with_other_types_have_other_shapes() {
    assert_ne!(Pair::<u8>::SHAPE, Pair::<u16>::SHAPE);
    assert_ne!(Samples::<u8>::SHAPE, Samples::<u8, u8>::SHAPE);
    assert_ne!(Samples::<u8>::SHAPE, Samples::<char>::SHAPE);
}

#[test]
fn the_name_of_an_instance_has_the_types_that_it_was_made_with() {
    assert_eq!(Pair::<u8>::type_name(), "Pair { left: u8, right: u8 }");
    let samples = "Samples { kind: bool, rate: f64, samples: Vec<u16> }";
    assert_eq!(Samples::<bool>::type_name(), samples);
}

/// A struct whose payload is of the type that whoever uses it asks for.
#[derive(Arguments, PartialEq, Debug)]
struct Tagged<P>(u64, P);

#[test]
fn a_parameter_may_be_the_payload() {
    fn tagged<P: Field + PartialEq + Debug>(payload: P, bytes: &[u8]) {
        there_and_back(Tagged(1, payload), &[1], bytes);
    }
    tagged(Bytes::from_static(b"abc"), b"abc");
    tagged("abc".to_owned(), b"abc");
    const { assert!(Tagged::<Bytes>::HAS_PAYLOAD && !Tagged::<u64>::HAS_PAYLOAD) };
}
