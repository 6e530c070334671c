//! Arguments of messages, and the types that programs have for them.
//!
//! The folder turns values into words and a payload, and back. It knows nothing of how messages
//! travel.

mod field;
mod payload;
mod plain;
mod room;
mod shape;
mod word;

use std::borrow::Cow;

pub use field::{Field, single};
pub(crate) use payload::HasPayload;
pub use payload::Payload;
pub use plain::Plain;
pub(crate) use room::Room;
pub use shape::Shape;
pub use word::Word;

use crate::wire::{ManyWords, Words};

/// A type of arguments, which a message carries as words and a payload. These types are:
///
/// * a [`Word`]: a number, a `bool`, or a type with `#[derive(Word)]`;
/// * a payload: [`Bytes`](bytes::Bytes), `String`, `Vec<T>` and `Box<[T]>` of [plain data](Plain);
/// * tuples of up to eight words, the last of which may be a payload, and arrays of words;
/// * structs of such fields with `#[derive(Arguments)]`;
/// * an `Option` of any of these;
/// * [`Words`] and [`ManyWords`], for programs that count their words at run time.
///
/// Words beyond the first sixteen, and eight bytes more, take the place of payload.
///
/// ```
/// use doorbell_am::{Arguments, Call};
/// # use bytes::Bytes;
///
/// #[derive(Arguments)]
/// # #[doorbell(crate = "doorbell_am")]
/// struct Put {
///     key: u64,
///     expires: Expires,
///     value: Bytes,
/// }
/// # #[derive(doorbell_am::Word, Clone, Copy)]
/// # #[doorbell(crate = "doorbell_am")]
/// # struct Expires(u64);
///
/// const PUT: Call<Put, bool> = Call::new("put");
/// const GET: Call<u64, Option<Bytes>> = Call::new("get");
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` can't be what a message carries",
    label = "this can't travel in a message",
    note = "words can, `Bytes`, `String`, `Vec<T>` and `Box<[T]>` of plain data, tuples of words of which \
            the last may be one of those, and structs with `#[derive(Arguments)]`"
)]
pub trait Arguments: Sized {
    /// The shape of the type, by which endpoints compare their handlers.
    const SHAPE: Shape;
    /// Whether values have a payload, so that no other payload can go beside them.
    const HAS_PAYLOAD: bool = false;

    /// Returns the name of the type, for errors.
    fn type_name() -> Cow<'static, str> {
        shape::type_name::<Self>()
    }

    /// Returns the number of words of the value.
    fn count(&self) -> usize;

    /// Encodes the value into its words.
    fn put(&self, words: &mut [u64]);

    /// Returns the payload of the value, of which a copy is sent.
    #[inline]
    fn payload(&self) -> &[u8] {
        &[]
    }

    /// Decodes a value from its words and the payload, or returns `None` if they are no value of
    /// this type.
    fn take(words: &[u64], payload: &mut Payload<'_>) -> Option<Self>;
}

impl<F: Field> Arguments for F {
    const SHAPE: Shape = F::SHAPE;
    const HAS_PAYLOAD: bool = F::WORDS == 0;

    fn type_name() -> Cow<'static, str> {
        F::type_name()
    }

    #[inline]
    fn count(&self) -> usize {
        F::WORDS
    }

    #[inline]
    fn put(&self, words: &mut [u64]) {
        Field::put(self, words);
    }

    #[inline]
    fn payload(&self) -> &[u8] {
        Field::payload(self)
    }

    #[inline]
    fn take(words: &[u64], payload: &mut Payload<'_>) -> Option<Self> {
        <F as Field>::take(words, payload)
    }
}

impl Arguments for () {
    const SHAPE: Shape = Shape::of("");

    #[inline]
    fn count(&self) -> usize {
        0
    }

    #[inline]
    fn put(&self, _: &mut [u64]) {}

    #[inline]
    fn take(words: &[u64], _: &mut Payload<'_>) -> Option<Self> {
        words.is_empty().then_some(())
    }
}

impl Arguments for Words {
    const SHAPE: Shape = Shape::of("words");

    #[inline]
    fn count(&self) -> usize {
        self.len()
    }

    #[inline]
    fn put(&self, words: &mut [u64]) {
        words.copy_from_slice(self);
    }

    #[inline]
    fn take(words: &[u64], _: &mut Payload<'_>) -> Option<Self> {
        Self::new(words)
    }
}

impl Arguments for ManyWords {
    const SHAPE: Shape = Words::SHAPE;

    fn count(&self) -> usize {
        self.0.len()
    }

    fn put(&self, words: &mut [u64]) {
        words.copy_from_slice(&self.0);
    }

    fn take(words: &[u64], _: &mut Payload<'_>) -> Option<Self> {
        Some(Self(words.to_vec()))
    }
}

impl<A: Arguments> Arguments for Option<A> {
    const SHAPE: Shape = Shape::of("option").with(A::SHAPE);
    const HAS_PAYLOAD: bool = A::HAS_PAYLOAD;

    #[inline]
    fn count(&self) -> usize {
        1 + self.as_ref().map_or(0, A::count)
    }

    #[inline]
    fn put(&self, words: &mut [u64]) {
        words[0] = self.is_some().word();
        if let Some(value) = self {
            value.put(&mut words[1..]);
        }
    }

    #[inline]
    fn payload(&self) -> &[u8] {
        self.as_ref().map_or(&[], A::payload)
    }

    #[inline]
    fn take(words: &[u64], payload: &mut Payload<'_>) -> Option<Self> {
        let (&there, words) = words.split_first()?;
        if bool::from_word(there)? {
            return A::take(words, payload).map(Some);
        }
        words.is_empty().then_some(None)
    }
}

impl<W: Word, const N: usize> Arguments for [W; N] {
    const SHAPE: Shape = {
        let (mut shape, mut at) = (Shape::of(""), 0);
        while at < N {
            shape = shape.and(W::KIND);
            at += 1;
        }
        shape
    };

    #[inline]
    fn count(&self) -> usize {
        N
    }

    #[inline]
    fn put(&self, words: &mut [u64]) {
        for (word, value) in words.iter_mut().zip(self) {
            *word = value.word();
        }
    }

    #[inline]
    fn take(words: &[u64], _: &mut Payload<'_>) -> Option<Self> {
        let words: &[u64; N] = words.try_into().ok()?;
        let Some(&first) = words.first() else { return Some([(); N].map(|()| unreachable!())) };
        let mut values = [W::from_word(first)?; N];
        for (value, &word) in values.iter_mut().zip(words) {
            *value = W::from_word(word)?;
        }
        Some(values)
    }
}

macro_rules! tuples {
    ($($count:literal: $($name:ident)* / $last:ident)+) => {$(
        impl<$($name: Word,)* $last: Field> Arguments for ($($name,)* $last,) {
            const SHAPE: Shape = Shape::of("")$(.and($name::KIND))*.with($last::SHAPE);
            const HAS_PAYLOAD: bool = $last::WORDS == 0;

            #[inline]
            fn count(&self) -> usize {
                $count + $last::WORDS
            }

            #[inline]
            #[allow(non_snake_case)]
            fn put(&self, words: &mut [u64]) {
                let ($($name,)* $last,) = self;
                let (front, last) = words.split_at_mut($count);
                front.copy_from_slice(&[$($name.word()),*]);
                $last.put(last);
            }

            #[inline]
            #[allow(non_snake_case)]
            fn payload(&self) -> &[u8] {
                let (.., $last,) = self;
                $last.payload()
            }

            #[inline]
            #[allow(non_snake_case)]
            fn take(words: &[u64], payload: &mut Payload<'_>) -> Option<Self> {
                let (front, last) = words.split_at_checked($count)?;
                let &[$($name),*] = front else { return None };
                Some(($($name::from_word($name)?,)* <$last as Field>::take(last, payload)?,))
            }
        }
    )+};
}

tuples! {
    0: / Z
    1: A / Z
    2: A B / Z
    3: A B C / Z
    4: A B C D / Z
    5: A B C D E / Z
    6: A B C D E F / Z
    7: A B C D E F G / Z
}

#[cfg(test)]
mod tests {
    use std::fmt;

    use bytes::Bytes;

    use super::*;
    use crate::wire::put_words;

    fn there_and_back<A>(arguments: A, expected: &[u64], payload: &[u8])
    where
        A: Arguments + PartialEq + fmt::Debug,
    {
        let (mut there, mut again) = (Room::new(), Room::new());
        let words = there.of(&arguments);
        assert_eq!(*words, *expected);
        assert_eq!(*arguments.payload(), *payload);
        let mut bytes = vec![0; 8 * words.len()];
        put_words(words, &mut bytes);
        let found = A::take(again.read(&bytes), &mut Payload::new(payload));
        assert_eq!(found, Some(arguments));
    }

    #[test]
    fn arguments_are_words_and_words_are_arguments_again() {
        there_and_back((), &[], &[]);
        there_and_back(7_u8, &[7], &[]);
        there_and_back(-1_i32, &[u64::MAX], &[]);
        there_and_back('ä', &[0xE4], &[]);
        there_and_back((true, 2.0_f64), &[1, 2.0_f64.to_bits()], &[]);
        there_and_back((5_u16,), &[5], &[]);
        there_and_back([0_u16; 0], &[], &[]);
        there_and_back([1_u16; 16], &[1; 16], &[]);
        there_and_back([1_u16; 17], &[1; 17], &[]);
        there_and_back([1_u16; 1000], &[1; 1000], &[]);
        there_and_back(ManyWords(vec![5; 100]), &[5; 100], &[]);
        there_and_back(Words::new(&[3, 2, 1]).expect("few"), &[3, 2, 1], &[]);
    }

    #[test]
    fn the_last_of_several_may_be_a_payload() {
        there_and_back(Bytes::from_static(b"abc"), &[], b"abc");
        there_and_back((7_u64, "abc".to_owned()), &[7], b"abc");
        there_and_back((7_u64, true, vec![1_u16, 2]), &[7, 1], &[1, 0, 2, 0]);
        there_and_back(vec![1.5_f64], &[], &1.5_f64.to_ne_bytes());
        there_and_back(Some((7_u8, Bytes::from_static(b"abc"))), &[1, 7], b"abc");
        there_and_back(None::<Bytes>, &[0], &[]);
        there_and_back(Some(Bytes::new()), &[1], &[]);
    }

    #[test]
    fn what_is_no_such_type_is_none() {
        let nothing = &mut Payload::new(&[]);
        assert_eq!(<u8 as Arguments>::take(&[256], nothing), None);
        assert_eq!(<i32 as Arguments>::take(&[1 << 31], nothing), None);
        assert_eq!(<bool as Arguments>::take(&[2], nothing), None);
        assert_eq!(<char as Arguments>::take(&[0xD800], nothing), None);
        assert_eq!(<u64 as Arguments>::take(&[], nothing), None);
        assert_eq!(<(u64, u64)>::take(&[1], nothing), None);
        assert_eq!(<[u64; 2]>::take(&[1, 2, 3], nothing), None);
        assert_eq!(<[u64; 0]>::take(&[1], nothing), None);
        assert_eq!(<()>::take(&[1], nothing), None);
        assert_eq!(<Option<u64> as Arguments>::take(&[0, 1], nothing), None);
        assert_eq!(<Option<u64> as Arguments>::take(&[1], nothing), None);
        assert_eq!(<Option<u64> as Arguments>::take(&[2, 1], nothing), None);
        let payload = &mut Payload::new(b"abc\xFF");
        assert_eq!(<String as Arguments>::take(&[], payload), None);
        assert_eq!(<Vec<u64> as Arguments>::take(&[], payload), None);
        assert_eq!(<Bytes as Arguments>::take(&[1], payload), None);
    }

    #[test]
    fn types_that_are_read_otherwise_have_other_shapes() {
        let shapes = [
            <()>::SHAPE,
            u64::SHAPE_OF_ARGUMENTS,
            <(u64, u64)>::SHAPE,
            <(u64, i64)>::SHAPE,
            <(u64, Bytes)>::SHAPE,
            <(u64, String)>::SHAPE,
            <(u64, Vec<f64>)>::SHAPE,
            <(u64, Vec<u64>)>::SHAPE,
            Option::<u64>::SHAPE,
            Option::<Bytes>::SHAPE,
        ];
        for (at, shape) in shapes.iter().enumerate() {
            assert!(!shapes[..at].contains(shape), "number {at}");
        }
    }

    /// Returns an unambiguous name for the shape.
    trait OfArguments: Arguments {
        const SHAPE_OF_ARGUMENTS: Shape = <Self as Arguments>::SHAPE;
    }

    impl<A: Arguments> OfArguments for A {}
}
