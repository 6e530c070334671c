//! Shapes: hashes that tell types of arguments apart in programs that were built separately.

use std::borrow::Cow;

/// A hash of a type of arguments. Two endpoints compare shapes instead of types.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Shape(pub(crate) u64);

impl Shape {
    /// Returns the shape of a type of this name.
    pub const fn of(name: &str) -> Self {
        // FNV-1a, <http://www.isthe.com/chongo/tech/comp/fnv/>.
        Self(0xCBF2_9CE4_8422_2325).and(name)
    }

    /// Returns the shape of a type that continues this one with a part of this name.
    #[must_use]
    pub const fn and(self, name: &str) -> Self {
        let Self(mut hash) = self;
        let mut at = 0;
        while at < name.len() {
            hash = step(hash, name.as_bytes()[at]);
            at += 1;
        }
        Self(step(hash, 0xFF))
    }

    /// Returns the shape of a type that continues this one with a part of that shape.
    #[must_use]
    pub const fn with(self, Self(part): Self) -> Self {
        let Self(mut hash) = self;
        let (bytes, mut at) = (part.to_le_bytes(), 0);
        while at < bytes.len() {
            hash = step(hash, bytes[at]);
            at += 1;
        }
        Self(step(hash, 0xFE))
    }
}

/// Adds a byte to a hash.
const fn step(hash: u64, byte: u8) -> u64 {
    (hash ^ byte as u64).wrapping_mul(0x0100_0000_01B3)
}

/// Returns the name of a type as a program writes it, without the modules in front.
pub(crate) fn type_name<T>() -> Cow<'static, str> {
    let full = std::any::type_name::<T>();
    if !full.contains("::") {
        return full.into();
    }
    let mut name = String::with_capacity(full.len());
    for part in full.split("::") {
        // What is behind the last character that no path has is the path's next segment.
        let path = |at: char| at.is_alphanumeric() || at == '_';
        name.truncate(name.trim_end_matches(path).len());
        name.push_str(part);
    }
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_type_has_no_modules() {
        assert_eq!(type_name::<(u64, bool)>(), "(u64, bool)");
        assert_eq!(type_name::<Option<(u64, Vec<Shape>)>>(), "Option<(u64, Vec<Shape>)>");
        assert_eq!(type_name::<[bytes::Bytes; 2]>(), "[Bytes; 2]");
    }

    #[test]
    fn shapes_of_other_parts_are_others() {
        let shapes = [
            Shape::of("a"),
            Shape::of("b"),
            Shape::of("").and("a"),
            Shape::of("a").and("b"),
            Shape::of("ab"),
            Shape::of("").with(Shape::of("a")),
            Shape::of("a").with(Shape::of("b")),
        ];
        for (at, shape) in shapes.iter().enumerate() {
            assert!(!shapes[..at].contains(shape), "number {at}");
        }
    }
}
