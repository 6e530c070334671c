//! Path MTUs: the largest payload of a packet on a path.

use std::fmt;
use std::str::FromStr;

/// The path MTU, which is the largest payload of a packet on a path.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(into = "u16", try_from = "u16"))]
#[repr(u16)]
pub enum PathMtu {
    /// An MTU of 256 bytes.
    Mtu256 = 256,
    /// An MTU of 512 bytes.
    Mtu512 = 512,
    /// An MTU of 1024 bytes.
    Mtu1024 = 1024,
    /// An MTU of 2048 bytes.
    Mtu2048 = 2048,
    /// An MTU of 4096 bytes.
    Mtu4096 = 4096,
}

impl PathMtu {
    /// The list of path MTUs, smallest first.
    pub const ALL: [Self; 5] =
        [Self::Mtu256, Self::Mtu512, Self::Mtu1024, Self::Mtu2048, Self::Mtu4096];

    /// Returns the largest payload in bytes.
    #[inline]
    pub const fn bytes(self) -> usize {
        self as usize
    }

    /// Returns how many packets a message of `len` bytes takes: one, if it is empty.
    #[inline]
    pub const fn packets(self, len: u32) -> u32 {
        // A shift instead of a division, since the compiler doesn't know that it divides by a power
        // of two.
        let len = if len == 0 { 1 } else { len as u64 };
        let packets = (len + self as u64 - 1) >> (self as u32).trailing_zeros();
        // The shift is by at least eight bits, so the result fits 32 bits.
        (packets & 0xFFFF_FFFF) as u32
    }

    /// Returns the 4-bit code on the wire.
    pub const fn code(self) -> u8 {
        match self {
            Self::Mtu256 => 1,
            Self::Mtu512 => 2,
            Self::Mtu1024 => 3,
            Self::Mtu2048 => 4,
            Self::Mtu4096 => 5,
        }
    }

    /// Returns the path MTU of a 4-bit code on the wire, if the code has a meaning.
    pub const fn from_code(code: u8) -> Option<Self> {
        match code {
            1 => Some(Self::Mtu256),
            2 => Some(Self::Mtu512),
            3 => Some(Self::Mtu1024),
            4 => Some(Self::Mtu2048),
            5 => Some(Self::Mtu4096),
            _ => None,
        }
    }

    /// Returns the largest path MTU that fits an interface's MTU together with all headers in front
    /// of the payload, for which the Linux kernel allows 80 bytes.
    pub fn fitting(interface_mtu: usize) -> Option<Self> {
        let beside = Self::LEAST_INTERFACE - Self::Mtu256.bytes();
        Self::ALL.into_iter().rev().find(|mtu| mtu.bytes() + beside <= interface_mtu)
    }

    /// The least MTU of an interface that a path MTU fits.
    pub const LEAST_INTERFACE: usize = Self::Mtu256.bytes() + 80;
}

/// The error for a number or a text that is no path MTU.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("`{found}` is no path MTU: that is 256, 512, 1024, 2048 or 4096")]
pub struct NotPathMtu {
    found: String,
}

impl From<PathMtu> for u16 {
    fn from(mtu: PathMtu) -> Self {
        mtu as Self
    }
}

impl TryFrom<u16> for PathMtu {
    type Error = NotPathMtu;

    fn try_from(bytes: u16) -> Result<Self, NotPathMtu> {
        let known = Self::ALL.into_iter().find(|&mtu| mtu as u16 == bytes);
        known.ok_or_else(|| NotPathMtu { found: bytes.to_string() })
    }
}

/// Displays the largest payload in bytes.
impl fmt::Display for PathMtu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.bytes().fmt(f)
    }
}

impl FromStr for PathMtu {
    type Err = NotPathMtu;

    fn from_str(text: &str) -> Result<Self, NotPathMtu> {
        let bytes = text.parse::<u16>().map_err(|_| NotPathMtu { found: text.to_owned() })?;
        bytes.try_into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_mtu_is_read_as_it_is_written() {
        for mtu in PathMtu::ALL {
            assert_eq!(mtu.to_string().parse(), Ok(mtu));
            assert_eq!(PathMtu::try_from(u16::from(mtu)), Ok(mtu));
        }
        for wrong in ["", "1500", "-256", "65536"] {
            let why = wrong.parse::<PathMtu>().unwrap_err();
            assert!(why.to_string().starts_with(&format!("`{wrong}` is no path MTU")), "{why}");
        }
    }

    #[test]
    fn a_message_takes_as_many_packets_as_it_fills_or_begins() {
        let packets = |len| PathMtu::Mtu1024.packets(len);
        assert_eq!([0, 1, 1024, 1025, 2048].map(packets), [1, 1, 1, 2, 2]);
        assert_eq!(PathMtu::Mtu256.packets(1 << 31), 1 << 23);
    }

    #[test]
    fn the_path_mtu_leaves_room_for_the_headers() {
        let fits = |mtu| PathMtu::fitting(mtu).map(PathMtu::bytes);
        assert_eq!(fits(1500), Some(1024));
        assert_eq!(fits(4175), Some(2048));
        assert_eq!(fits(4176), Some(4096));
        assert_eq!(fits(335), None);
    }
}
