//! A program of any type.

use futures_util::future::LocalBoxFuture;

use super::error::BoxError;
use crate::world::World;

/// A program that keeps what it returns. Its type is forgotten, so that what runs programs is
/// compiled once.
pub(super) type Program<'a> =
    &'a (dyn Fn(World) -> LocalBoxFuture<'a, Result<(), BoxError>> + Sync + 'a);
