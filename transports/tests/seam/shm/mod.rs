//! Shared memory: real sockets, real processes, and peers that lie.

mod common;
mod grants;
mod hostile;
mod liar;
mod many;
mod meeting;
mod nics;
mod processes;
mod rings;
mod sleeping;
mod stopped;
mod strangers;
