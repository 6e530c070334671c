//! The end of a process ends what others have to do with that process, with an error that names it, and nothing
//! hangs.

#[path = "../common.rs"]
mod common;
mod dying;
mod given_up;
mod killed;
mod leftover;
