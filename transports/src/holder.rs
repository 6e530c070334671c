//! The holder of a name: a user and a process.

use std::fmt;

/// The user and the process that have a name, or the other end of a connection, as far as the
/// kernel tells.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Holder {
    /// The number of the user. `None` if the user has no number in this process's user namespace,
    /// or the kernel does not tell.
    pub user: Option<u32>,
    /// The number of the process. `None` if the process is of another PID namespace, or the kernel
    /// does not tell.
    pub process: Option<u32>,
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.process {
            Some(process) => write!(f, "process {process} of ")?,
            None => f.write_str("a process of ")?,
        }
        match self.user {
            Some(user) => write!(f, "user {user}"),
            None => f.write_str("a user who has no number here (of another user namespace)"),
        }
    }
}

/// Returns the part of an error that says as which user a process runs. `None` is a user without a
/// number of its own.
pub(crate) fn running_as(own: &Option<u32>) -> String {
    own.map_or_else(
        || {
            "the user who stands for all that have no number here (`sysctl \
             kernel.overflowuid`), and is the same as nobody: run it as a user of its own"
                .to_owned()
        },
        |own| format!("user {own}"),
    )
}
