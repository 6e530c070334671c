//! Memory of the program into which long bodies are pulled.

use std::collections::HashMap;
use std::ops::RangeBounds;
use std::sync::{Mutex, OnceLock};

use bytes::{Bytes, BytesMut};
use doorbell_verbs::floor::locked;
use doorbell_verbs::{AccessError, Region, Registered};

/// A part of a [`Region`] of the program, into which a message is received.
///
/// ```
/// use doorbell_messages::RegionPart;
/// use doorbell_verbs::Region;
///
/// let memory = Region::new(1 << 20);
/// let upper_half = RegionPart::new(&memory, 1 << 19..)?;
/// assert_eq!(upper_half.len(), 1 << 19);
/// assert!(RegionPart::new(&memory, ..=1 << 20).is_err());
/// # Ok::<(), doorbell_verbs::AccessError>(())
/// ```
#[derive(Clone, Debug)]
pub struct RegionPart {
    region: Region,
    begin: usize,
    len: usize,
}

impl RegionPart {
    /// Names the part of a region that a range of its bytes is.
    ///
    /// # Errors
    /// When the range is not within the region.
    pub fn new(region: &Region, range: impl RangeBounds<usize>) -> Result<Self, AccessError> {
        let range = region.range(range)?;
        Ok(Self { region: region.clone(), begin: range.start, len: range.len() })
    }

    /// Returns the number of bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether the part has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the region that this is a part of.
    pub fn region(&self) -> &Region {
        &self.region
    }

    /// Returns where in the region the part begins.
    pub fn begin(&self) -> usize {
        self.begin
    }

    /// Fills the part with as many of some bytes as it has room for. Returns the rest of them.
    pub(in crate::tagged) fn fill<'b>(&self, bytes: &'b [u8]) -> &'b [u8] {
        let (now, rest) = bytes.split_at(bytes.len().min(self.len));
        // The part was within its region when it was made, and regions keep their lengths.
        let written = self.region.write_at(self.begin, now);
        debug_assert!(written.is_ok(), "{written:?}");
        rest
    }
}

impl From<Region> for RegionPart {
    fn from(region: Region) -> Self {
        Self { begin: 0, len: region.len(), region }
    }
}

impl From<&Region> for RegionPart {
    fn from(region: &Region) -> Self {
        region.clone().into()
    }
}

/// Memory of the program for a body: parts of regions, of which each is filled before the next is.
#[derive(Debug)]
pub struct Target {
    parts: Box<[RegionPart]>,
    /// The layout of the parts, once a body is pulled into them: most are short, and are copied.
    layout: OnceLock<Layout>,
    filling: Mutex<Filling>,
}

/// The layout of the parts of a target: where each begins in the body, and which region it is of.
#[derive(Default, Debug)]
struct Layout {
    /// The place in the body of the first byte of each part.
    begins: Vec<usize>,
    /// The regions that the parts are of, each once.
    regions: Vec<Region>,
    /// The place of each part's region among these.
    region_of: Vec<usize>,
}

impl Layout {
    fn of(parts: &[RegionPart]) -> Self {
        let (mut layout, mut places, mut next) = (Self::default(), HashMap::new(), 0);
        for part in parts {
            let place = *places.entry(part.region.words().as_ptr()).or_insert_with(|| {
                layout.regions.push(part.region.clone());
                layout.regions.len() - 1
            });
            layout.region_of.push(place);
            layout.begins.push(next);
            next += part.len;
        }
        layout
    }
}

/// Whether the memory is filled, and by what.
#[derive(Default, Debug)]
struct Filling {
    /// Whether the program has dropped the receive that was to fill the memory.
    is_given_up: bool,
    /// The registrations by which reads under way write to the memory.
    registered: Vec<Registered>,
}

/// The place of a byte of a body in the memory for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TargetPlace {
    /// The region, by its place among the target's.
    pub region: usize,
    /// Where in the region.
    pub at: usize,
    /// How many bytes of the part are left from there on.
    pub room: usize,
}

impl Target {
    pub fn new(parts: Vec<RegionPart>) -> Self {
        let (layout, filling) = Default::default();
        Self { parts: parts.into(), layout, filling }
    }

    fn layout(&self) -> &Layout {
        self.layout.get_or_init(|| Layout::of(&self.parts))
    }

    /// Returns the regions of the memory, each once.
    pub fn regions(&self) -> &[Region] {
        &self.layout().regions
    }

    /// Returns where a byte of the body comes, if there is room for it.
    pub fn place_of(&self, at: usize) -> Option<TargetPlace> {
        // Of parts that begin at the same byte, all but the last are empty.
        let Layout { begins, region_of, .. } = self.layout();
        let place = begins.partition_point(|&begin| begin <= at).checked_sub(1)?;
        let (part, within) = (&self.parts[place], at - begins[place]);
        let room = part.len.checked_sub(within).filter(|&room| room > 0)?;
        Some(TargetPlace { region: region_of[place], at: part.begin + within, room })
    }

    /// Writes bytes of the body from the byte `at` on, unless the program has dropped the receive.
    /// Returns whether it has not. What there is no room for is left out.
    pub fn write(&self, mut at: usize, mut bytes: &[u8]) -> bool {
        // Held while bytes are written: once the receive is dropped, none are.
        let filling = locked(&self.filling);
        if filling.is_given_up {
            return false;
        }
        while !bytes.is_empty()
            && let Some(place) = self.place_of(at)
        {
            let (now, later) = bytes.split_at(bytes.len().min(place.room));
            // The range is within the region, as it was checked when the part was made.
            let written = self.regions()[place.region].write_at(place.at, now);
            debug_assert!(written.is_ok(), "{written:?}");
            at += now.len();
            bytes = later;
        }
        true
    }

    /// Returns a copy of the first `len` bytes.
    pub fn to_bytes(&self, len: usize) -> Bytes {
        let mut bytes = BytesMut::zeroed(len);
        let mut rest = &mut bytes[..];
        for part in &self.parts {
            let (into, behind) = rest.split_at_mut(part.len.min(rest.len()));
            let read = part.region.read_at(part.begin, into);
            debug_assert!(read.is_ok(), "{read:?}");
            rest = behind;
        }
        bytes.freeze()
    }

    /// Notes registrations by which reads are to write to the memory, unless the program has dropped
    /// the receive. Returns whether it has not.
    pub fn is_registered(&self, by: impl IntoIterator<Item = Registered>) -> bool {
        let mut filling = locked(&self.filling);
        if !filling.is_given_up {
            filling.registered.extend(by);
        }
        !filling.is_given_up
    }

    /// Forgets the registrations, by which no reads are under way any more.
    pub fn is_not_registered(&self) {
        locked(&self.filling).registered.clear();
    }

    /// Notes that the program drops the receive. No bytes are copied to the memory from here on.
    pub fn give_up(&self) {
        locked(&self.filling).is_given_up = true;
    }

    /// Ends the registrations of memory that was given up: no read writes to it from here on. One
    /// that is under way fails, and ends the connection that it goes over, which is made again.
    pub fn revoke(&self) {
        let registered = std::mem::take(&mut locked(&self.filling).registered);
        for registered in registered {
            // A registration that was revoked before names nothing already.
            let _ = registered.revoke_now();
        }
    }

    /// Returns whether the program has dropped the receive.
    pub fn is_given_up(&self) -> bool {
        locked(&self.filling).is_given_up
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_written_across_parts_and_read_again() {
        let region = Region::new(100);
        let parts = [3..10, 20..20, 30..61];
        let parts = parts.map(|part| RegionPart::new(&region, part).expect("it is within"));
        let target = Target::new(parts.into());
        let body: Vec<_> = (1..=38).collect();
        for split in 0..=38 {
            let (head, tail) = body.split_at(split);
            region.write_at(0, &[0; 100]).expect("it is within");
            assert!(target.write(0, head) && target.write(split, tail));
            assert_eq!(target.to_bytes(38), body, "split at {split}");
            assert_eq!(target.to_bytes(12), body[..12]);
        }
        let mut all = [0; 100];
        region.read_at(0, &mut all).expect("it is within");
        assert_eq!((&all[3..10], &all[30..61]), (&body[..7], &body[7..]));
        assert!(all[..3].iter().chain(&all[10..30]).chain(&all[61..]).all(|&byte| byte == 0));
        assert_eq!(target.regions().len(), 1, "all parts are of one region");
        let places = [0, 6, 7, 37].map(|at| target.place_of(at));
        let expected = [(3, 7), (9, 1), (30, 31), (60, 1)];
        let expected = expected.map(|(at, room)| Some(TargetPlace { region: 0, at, room }));
        assert_eq!(places, expected);
        assert_eq!(target.place_of(38), None);
    }

    #[test]
    fn nothing_is_written_to_memory_that_was_given_up() {
        let region = Region::new(8);
        let target = Target::new(vec![(&region).into()]);
        target.give_up();
        assert!(!target.write(0, &[7]) && target.is_given_up() && region.load(0) == Ok(0));
        assert!(!target.is_registered([]));
        assert!(Target::new(Vec::new()).place_of(0).is_none());
    }

    #[test]
    fn a_part_lies_within_its_region() {
        let region = Region::new(100);
        let (begin, end) = (70, 60);
        for (range, len) in [(0..100, Some(100)), (100..100, Some(0)), (0..101, None)] {
            let part = RegionPart::new(&region, range);
            assert_eq!(part.ok().map(|part| part.len()), len);
        }
        assert!(RegionPart::new(&region, begin..end).is_err());
        assert!(RegionPart::new(&region, ..=usize::MAX).is_err());
    }
}
