//! Methods: the names by which clients call and servers route.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;

use crate::codec::Postcard;

/// A method without its types: its path, its schema, and whether its calls may be repeated.
#[derive(Clone, Copy, Debug)]
pub struct MethodId {
    path: &'static str,
    /// The number that stands for the path on the wire.
    number: u64,
    schema: &'static str,
    /// The number that stands for the schema on the wire; zero if there is no schema, which fits
    /// any.
    schema_number: u64,
    idempotent: bool,
}

impl MethodId {
    pub(crate) const NONE: Self = Self::new("");

    /// Makes a method with a path, such as `kv.Store/get`.
    #[must_use]
    pub const fn new(path: &'static str) -> Self {
        Self { path, number: hash(path), schema: "", schema_number: 0, idempotent: false }
    }

    /// Sets the schema of the method: a text that describes the types. A server refuses calls whose
    /// schema differs from its own, before it reads their bodies.
    #[must_use]
    pub const fn schema(self, schema: &'static str) -> Self {
        Self { schema, schema_number: hash(schema), ..self }
    }

    /// Marks the method as idempotent: its calls may run more than once without harm. Such a call
    /// may be sent again when it is not known whether it has run.
    #[must_use]
    pub const fn idempotent(self) -> Self {
        Self { idempotent: true, ..self }
    }

    /// The path of the method.
    #[must_use]
    pub const fn path(&self) -> &'static str {
        self.path
    }

    /// The schema of the method; empty if there is none.
    #[must_use]
    pub const fn schema_text(&self) -> &'static str {
        self.schema
    }

    /// Whether calls of the method may run more than once without harm.
    #[must_use]
    pub const fn is_idempotent(&self) -> bool {
        self.idempotent
    }

    pub(crate) const fn number(&self) -> u64 {
        self.number
    }

    /// Whether calls of this method fit a handler of the other method: either has no schema, or
    /// both have the same.
    pub(crate) fn fits(&self, other: &Self) -> bool {
        let (one, other) = (self.schema_number, other.schema_number);
        one == 0 || other == 0 || one == other
    }

    pub(crate) const fn schema_number(&self) -> u64 {
        self.schema_number
    }
}

impl PartialEq for MethodId {
    fn eq(&self, other: &Self) -> bool {
        self.path == other.path && self.schema == other.schema
    }
}

impl Eq for MethodId {}

impl Hash for MethodId {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.number.hash(state);
    }
}

impl fmt::Display for MethodId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.path)
    }
}

/// A method with the types of its request and its response, and the codec of both. Callers and
/// routers that are written by hand share such constants.
///
/// ```
/// use doorbell_rpc::Method;
///
/// const ADD: Method<(u64, u64), u64> = Method::new("calculator/add").idempotent();
/// ```
pub struct Method<A, R, C = Postcard>(MethodId, PhantomData<fn(A, C) -> R>);

impl<A, R, C> Method<A, R, C> {
    /// Makes a method with a path, such as `kv.Store/get`.
    #[must_use]
    pub const fn new(path: &'static str) -> Self {
        Self(MethodId::new(path), PhantomData)
    }

    /// Sets the schema of the method: see [`MethodId::schema`].
    #[must_use]
    pub const fn schema(self, schema: &'static str) -> Self {
        Self(self.0.schema(schema), PhantomData)
    }

    /// Marks the method as idempotent: see [`MethodId::idempotent`].
    #[must_use]
    pub const fn idempotent(self) -> Self {
        Self(self.0.idempotent(), PhantomData)
    }

    /// The method without its types.
    #[must_use]
    pub const fn id(&self) -> MethodId {
        self.0
    }
}

impl<A, R, C> Clone for Method<A, R, C> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<A, R, C> Copy for Method<A, R, C> {}

impl<A, R, C> fmt::Debug for Method<A, R, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The number that stands for a text: FNV-1a of 64 bits, and never zero.
const fn hash(text: &str) -> u64 {
    let bytes = text.as_bytes();
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut at = 0;
    while at < bytes.len() {
        hash = (hash ^ bytes[at] as u64).wrapping_mul(0x0100_0000_01b3);
        at += 1;
    }
    if hash == 0 { 1 } else { hash }
}
