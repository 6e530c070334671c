//! Rights: what may be done with registered memory.

use std::fmt;
use std::ops::{BitOr, BitOrAssign};
use std::str::FromStr;

use thiserror::Error;

/// Rights to registered memory, or of a queue pair's peer.
///
/// As text they are the names of all rights that are granted, with `|` between them:
///
/// ```
/// use doorbell_core::nic::Rights;
///
/// let rights = Rights::REMOTE_READ | Rights::REMOTE_WRITE;
/// assert_eq!(rights.to_string(), "remote-write|remote-read");
/// assert_eq!("remote-write | remote-read".parse(), Ok(rights));
/// assert_eq!(Rights::NONE.to_string(), "none");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Rights(u8);

impl Rights {
    /// The right to nothing but reads of the memory by the program's own requests, which are always
    /// allowed.
    pub const NONE: Self = Self(0);

    /// Receives and reads of the program's own may put data into the memory.
    pub const LOCAL_WRITE: Self = Self(1);

    /// Peers may write to the memory.
    pub const REMOTE_WRITE: Self = Self(2);

    /// Peers may read the memory.
    pub const REMOTE_READ: Self = Self(4);

    /// Peers may do atomic operations on the memory.
    pub const REMOTE_ATOMIC: Self = Self(8);

    /// Peers may invalidate the remote key.
    pub const REMOTE_INVALIDATE: Self = Self(16);

    /// Peers may write to the memory, read it, and do atomic operations on it.
    pub const REMOTE: Self =
        Self(Self::REMOTE_WRITE.0 | Self::REMOTE_READ.0 | Self::REMOTE_ATOMIC.0);

    /// Each right by itself, and its name.
    const NAMES: [(Self, &str); 5] = [
        (Self::LOCAL_WRITE, "local-write"),
        (Self::REMOTE_WRITE, "remote-write"),
        (Self::REMOTE_READ, "remote-read"),
        (Self::REMOTE_ATOMIC, "remote-atomic"),
        (Self::REMOTE_INVALIDATE, "remote-invalidate"),
    ];

    /// Whether these rights include all `others`.
    #[inline]
    pub const fn include(self, others: Self) -> bool {
        self.0 & others.0 == others.0
    }

    /// The names of the rights that are granted.
    fn names(self) -> impl Iterator<Item = &'static str> {
        let given = Self::NAMES.into_iter().filter(move |&(right, _)| self.include(right));
        given.map(|(_, name)| name)
    }
}

impl BitOr for Rights {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitOrAssign for Rights {
    fn bitor_assign(&mut self, other: Self) {
        *self = *self | other;
    }
}

impl fmt::Debug for Rights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.names()).finish()
    }
}

impl fmt::Display for Rights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Self::NONE {
            return f.write_str("none");
        }
        for (index, name) in self.names().enumerate() {
            let before = if index == 0 { "" } else { "|" };
            write!(f, "{before}{name}")?;
        }
        Ok(())
    }
}

/// Text that names something else than rights.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error(
    "`{found}` is no right to memory: those are local-write, remote-write, remote-read, remote-atomic \
     and remote-invalidate, with `|` between them, or none"
)]
pub struct NotRights {
    found: String,
}

impl FromStr for Rights {
    type Err = NotRights;

    fn from_str(text: &str) -> Result<Self, NotRights> {
        if text.trim() == "none" {
            return Ok(Self::NONE);
        }
        text.split('|').map(str::trim).try_fold(Self::NONE, |rights, found| {
            let known = Self::NAMES.into_iter().find(|&(_, name)| name == found);
            let (right, _) = known.ok_or_else(|| NotRights { found: found.to_owned() })?;
            Ok(rights | right)
        })
    }
}

#[cfg(feature = "serde")]
crate::wire::serde_as_text! { Rights }

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rights_are_read_as_they_are_written() {
        for bits in 0..32 {
            let rights = Rights(bits);
            assert_eq!(rights.to_string().parse(), Ok(rights));
        }
        for wrong in ["", "remote", "remote-read|", "none|remote-read", "remote-read,remote-write"]
        {
            assert!(wrong.parse::<Rights>().is_err(), "{wrong}");
        }
    }
}
