//! Opening a device: joining by a name, and pairs.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use super::handshakes::listening;
use super::limits::Limits;
use super::link::{Link, Segment, Side};
use super::message;
use super::state::Shm;
use crate::open::DeviceError;
use crate::sys;
use crate::sys::unix::{self, Socket};

impl Shm {
    /// Joins by a name, by which other devices [reach](crate::Device::reach) this one as
    /// `shm:NAME`.
    ///
    /// # Errors
    /// When somebody has that name, or it is longer than 90 bytes, or empty, or has control
    /// characters in it.
    pub fn join(name: &str) -> Result<Self, DeviceError> {
        Self::join_within(name, Limits::default())
    }

    /// Joins by a name that nobody else has, whatever the user, the process and the container:
    /// `auto/` and a random number of 64 bits. [`Device::address`](crate::Device::address) tells
    /// the name, for peers to reach this device by.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn join_unique() -> Result<Self, DeviceError> {
        let drawn = sys::random().map_err(|source| {
            let what = "drawing a name".to_owned();
            DeviceError::System { device: "shm", what, source }
        })?;
        Self::join(&format!("auto/{:016x}", u64::from_ne_bytes(drawn)))
    }

    /// Joins by a name, as [`join`](Self::join) does, with limits of the caller's choice.
    ///
    /// # Errors
    /// As [`join`](Self::join), and when the limits are out of range.
    pub fn join_within(name: &str, limits: Limits) -> Result<Self, DeviceError> {
        let what = || format!("the name `{name}`");
        if let Some(why) = message::not_a_name(name) {
            return Err(DeviceError::Name { device: "shm", name: name.into(), why });
        }
        let mut joined = Self::new(name, limits)?;
        match joined.listen() {
            Ok(()) => Ok(joined),
            Err(source) if source.kind() == io::ErrorKind::AddrInUse => Err(DeviceError::Taken {
                device: "shm",
                what: what(),
                by: Some(unix::holder(&listening(name))),
                source,
                advice: "take another, or end that process: a name is one process's at a time, \
                         whoever its user is",
            }),
            Err(source) => Err(DeviceError::System { device: "shm", what: what(), source }),
        }
    }

    /// Opens two devices that are linked to each other, and to nobody else. Each
    /// [reaches](crate::Device::reach) the [address](crate::Device::address) of the other.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn pair() -> Result<[Self; 2], DeviceError> {
        Self::pair_within(Limits::default())
    }

    /// Opens a pair, as [`pair`](Self::pair) does, with limits of the caller's choice.
    ///
    /// # Errors
    /// When the system refuses, or the limits are out of range.
    pub fn pair_within(limits: Limits) -> Result<[Self; 2], DeviceError> {
        static PAIRS: AtomicU64 = AtomicU64::new(0);
        let number = PAIRS.fetch_add(1, Ordering::Relaxed);
        let names = ["a", "b"].map(|end| format!("in-process/{number}/{end}"));
        let mut ends = [Self::new(&names[0], limits)?, Self::new(&names[1], limits)?];
        let mut link = || -> io::Result<()> {
            let segment = Segment::new(limits.lines())?;
            let [a, b] = &mut ends;
            let [here, there] = Socket::pair()?;
            a.link_at_once(|id| Ok(Link::new(id, &segment, Side::Caller, here, &names[1])))?;
            b.link_at_once(|id| Ok(Link::new(id, &segment, Side::Called, there, &names[0])))?;
            Ok(())
        };
        let what = "a pair".to_owned();
        link().map_err(|source| DeviceError::System { device: "shm", what, source })?;
        Ok(ends)
    }
}
