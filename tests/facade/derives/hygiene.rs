use crate::derives::there_and_back;

/// The traits by another path than the usual one.
mod elsewhere {
    pub use doorbell::am::{Arguments, Field, Payload, Plain, Shape, Word, single};
}

/// Types in a module without the prelude, in which names that derived code might use mean other
/// things.
mod bare {
    #![no_implicit_prelude]
    #![allow(dead_code)]

    struct Option;
    struct Some;
    struct None;
    trait Word {}
    trait Arguments {}
    trait Field {
        fn put(&self) {}
        fn payload(&self) {}
        fn count(&self) {}
        fn word(&self) {}
    }
    impl<T> Field for T {}
    mod std {}
    mod core {}
    mod doorbell {}
    const WORD_0: u64 = 77;

    #[derive(::doorbell::am::Word, Clone, Copy, PartialEq, Debug)]
    pub enum Colour {
        Red,
        Green,
    }

    #[derive(::doorbell::am::Word, Clone, Copy, PartialEq, Debug)]
    pub struct Key {
        pub word: u64,
    }

    #[derive(::doorbell::am::Arguments, PartialEq, Debug)]
    pub struct Put {
        pub words: u64,
        pub word: Key,
        pub last: Colour,
        pub payload: ::bytes::Bytes,
    }

    use ::std::prelude::v1::{Clone, Copy, Debug, PartialEq, derive};
}

#[derive(doorbell::am::Arguments, PartialEq, Debug)]
#[doorbell(crate = "elsewhere")]
struct Put(Key, Point);

#[derive(doorbell::am::Word, Clone, Copy, PartialEq, Debug)]
#[doorbell(crate = "self::elsewhere")]
struct Key(u64);

#[derive(
    doorbell::am::Plain,
    Clone,
    Copy,
    PartialEq,
    Debug,
    zerocopy::FromBytes,
    zerocopy::IntoBytes,
    zerocopy::Immutable,
)]
#[doorbell(crate = "crate::derives::hygiene::elsewhere")]
#[repr(C)]
struct Point {
    x: u8,
    y: u8,
}

/// Declares a struct whose parts come from the caller of a macro and from the macro.
macro_rules! message {
    ($name:ident { $($field:ident: $type:ty),* }) => {
        #[derive(doorbell::am::Arguments, PartialEq, Debug)]
        struct $name { $($field: $type,)* last: u64 }
    };
}

message! { Made { first: u8, words: Key } }

#[test]
fn derived_code_does_not_depend_on_the_names_around_it() {
    use bare::{Colour, Key, Put};
    let (word, last) = (Key { word: 2 }, Colour::Green);
    let payload = bytes::Bytes::from_static(b"abc");
    there_and_back(Put { words: 1, word, last, payload }, &[1, 2, 1], b"abc");
}

#[test]
fn the_path_of_the_traits_can_be_said_at_the_type() {
    there_and_back(Put(Key(1), Point { x: 2, y: 3 }), &[1], &[2, 3]);
}

#[test]
fn a_macro_can_declare_the_struct() {
    there_and_back(Made { first: 1, words: Key(2), last: 3 }, &[1, 2, 3], b"");
    let name = <Made as doorbell::am::Arguments>::type_name();
    assert_eq!(name, "Made { first: u8, words: Key, last: u64 }");
}
