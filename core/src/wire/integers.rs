//! Macros that declare the integer types of the wire, and parse them from text.

/// The error for a number that is too large for its type, or a text that is no such number.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "`{found}` is no {name}: that is a number of {bits} bits, in decimal, or in hexadecimal behind `0x`"
)]
pub struct NotNumber {
    /// The name of the type.
    name: &'static str,
    bits: u32,
    found: String,
}

impl NotNumber {
    pub(crate) fn new(name: &'static str, bits: u32, found: impl ToString) -> Self {
        Self { name, bits, found: found.to_string() }
    }
}

/// Parses a number in decimal, or in hexadecimal after `0x`.
pub(crate) fn number(text: &str) -> Option<u64> {
    let (digits, radix) = match text.strip_prefix("0x") {
        Some(digits) => (digits, 16),
        None => (text, 10),
    };
    // The standard library would accept a plus sign.
    let signed = digits.starts_with('+');
    u64::from_str_radix(digits, radix).ok().filter(|_| !signed)
}

/// Implements parsing from text for an integer type.
macro_rules! read_integer {
    ($name:ident($repr:ty), $bits:expr) => {
        /// Parses a number in decimal, or in hexadecimal after `0x`.
        impl std::str::FromStr for $name {
            type Err = $crate::wire::integers::NotNumber;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                let number = $crate::wire::integers::number(text);
                let number = number.and_then(|number| <$repr>::try_from(number).ok());
                number.and_then(|number| Self::try_from(number).ok()).ok_or_else(|| {
                    $crate::wire::integers::NotNumber::new(stringify!($name), $bits, text)
                })
            }
        }

        impl From<$name> for $repr {
            #[inline]
            fn from(value: $name) -> Self {
                value.0
            }
        }
    };
}

/// Declares wire integers of full width, for which every value of the representation is legal.
macro_rules! wire_integer {
    ($($(#[$doc:meta])* $name:ident($repr:ty) = $format:literal;)+) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
        #[cfg_attr(feature = "serde", serde(transparent))]
        #[repr(transparent)]
        pub struct $name(pub $repr);

        impl From<$repr> for $name {
            #[inline]
            fn from(value: $repr) -> Self {
                Self(value)
            }
        }

        $crate::wire::integers::read_integer! { $name($repr), <$repr>::BITS }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "(", $format, ")"), self.0)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, $format, self.0)
            }
        }
    )+};
}

/// Declares wire integers that are narrower than their representation, of which
/// [`new`](crate::wire::Psn::new) keeps the low bits.
macro_rules! narrow_integer {
    ($($(#[$doc:meta])* $name:ident($repr:ty, $bits:literal bits) = $format:literal;)+) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        #[repr(transparent)]
        pub struct $name($repr);

        impl $name {
            /// The number of bits that the integer has on the wire.
            pub const BITS: u32 = $bits;
            /// The largest value of the integer.
            pub const MAX: Self = Self((1 << $bits) - 1);

            /// Takes the low bits of `value` and cuts off higher ones, as sequence arithmetic needs
            /// it.
            #[inline]
            pub const fn new(value: $repr) -> Self {
                Self(value & Self::MAX.0)
            }

            /// Returns the value, right-aligned.
            #[inline]
            pub const fn get(self) -> $repr {
                self.0
            }
        }

        /// Converts a number, unless it has more bits than the type.
        impl TryFrom<$repr> for $name {
            type Error = $crate::wire::integers::NotNumber;

            fn try_from(value: $repr) -> Result<Self, Self::Error> {
                match value <= Self::MAX.0 {
                    true => Ok(Self(value)),
                    false => Err($crate::wire::integers::NotNumber::new(
                        stringify!($name), $bits, value,
                    )),
                }
            }
        }

        $crate::wire::integers::read_integer! { $name($repr), $bits }

        #[cfg(feature = "serde")]
        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                self.0.serialize(serializer)
            }
        }

        #[cfg(feature = "serde")]
        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let value = <$repr as serde::Deserialize>::deserialize(deserializer)?;
                Self::try_from(value).map_err(serde::de::Error::custom)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "(", $format, ")"), self.0)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, $format, self.0)
            }
        }
    )+};
}

/// Implements serialisation of types as the text that they display and are parsed from.
#[cfg(feature = "serde")]
macro_rules! serde_as_text {
    ($($name:ident)+) => {$(
        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    )+};
}

#[cfg(feature = "serde")]
pub(crate) use serde_as_text;
pub(crate) use {narrow_integer, read_integer, wire_integer};

#[cfg(test)]
mod tests {
    use crate::wire::{Imm, Psn, Qpn, Rkey, ServiceId};

    #[test]
    fn an_integer_is_read_as_it_is_written_and_in_decimal() {
        assert_eq!(Rkey(0xC0FFEE).to_string().parse(), Ok(Rkey(0xC0FFEE)));
        assert_eq!(Qpn::MAX.to_string().parse(), Ok(Qpn::MAX));
        assert_eq!(Psn::new(7).to_string().parse(), Ok(Psn::new(7)));
        assert_eq!("7".parse(), Ok(ServiceId(7)));
        assert_eq!("0xffffffffffffffff".parse(), Ok(ServiceId(u64::MAX)));
    }

    #[test]
    fn what_is_no_number_or_too_large_is_said_with_what_it_should_be() {
        let why = "0x1000000".parse::<Qpn>().unwrap_err();
        assert_eq!(
            why.to_string(),
            "`0x1000000` is no Qpn: that is a number of 24 bits, in decimal, or in hexadecimal behind \
             `0x`"
        );
        assert!(Qpn::try_from(1 << 24).is_err());
        assert_eq!(Qpn::try_from((1 << 24) - 1), Ok(Qpn::MAX));
        for wrong in ["", "-1", "+1", "0x", "0x+1", "4294967296", "one"] {
            assert!(wrong.parse::<Imm>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_integer_becomes_its_representation_and_comes_of_it() {
        assert_eq!(ServiceId::from(7), ServiceId(7));
        assert_eq!((u64::from(ServiceId(7)), u32::from(Qpn::GSI)), (7, 1));
    }
}
