//! Processes that a process of a job starts itself, on its machine, and that meet without any name
//! that others could know.
//!
//! Process 0 makes a pair of sockets for each process that it starts, which inherits one of them.
//! So nobody but that process is at the other end, and there is no name and no port to which a
//! stranger could connect. Three variables tell a process that it was started so: its rank, the
//! number of its descriptor, and the process for whose children the variables are meant. None of
//! them is a secret.
//!
//! | from | line |
//! |---|---|
//! | process 0, at once | `secret SECRET` |
//! | process | `at ADDRESS` |
//! | process 0, when all have told theirs | `all ADDRESS ADDRESS ...`, in the order of ranks |
//! | process, before it ends since another has returned too early | `early RANK` |
//!
//! The connection stays, so that each side notices when the other ends. Process 0 reads from all at
//! once, by one deadline, and no more of anybody than an address may have bytes.

mod children;
mod lines;
mod starter;

pub use children::{Absence, Children};
pub use starter::{Starter, Teller};

/// The variable with the rank of a process that process 0 has started.
const RANK: &str = "DOORBELL_JOB_RANK";
/// The variable with the number of the descriptor of such a process.
const SOCKET: &str = "DOORBELL_JOB_FD";
/// The variable with the process id of process 0. The variables count in its children alone: they
/// are inherited further where they can't be removed.
const PARENT: &str = "DOORBELL_JOB_PARENT";

/// The most bytes of the address of a process.
pub const LONGEST_ADDRESS: usize = 4096;
/// The most bytes of the secret of a job whose processes process 0 starts.
pub const LONGEST_SECRET: usize = 1024;
