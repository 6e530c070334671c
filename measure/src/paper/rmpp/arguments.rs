//! The arguments of the exchanges that are measured.

/// The steps of the paper: a name, and the arguments of an exchange. From the first step on, the
/// NIC has a thread.
pub const STEPS: [(&str, &str); 3] = [
    ("Step 0: the host copies frames", "--step 0 --runs program"),
    ("Step 1: receives offloaded", "--step 1 --runs nic"),
    ("Step 2: receives and sends offloaded", "--step 2 --runs nic"),
];
/// The arguments of all exchanges: the protocol, and frames of 1,500 bytes with all headers.
pub const COMMON: &str = "--protocol rmpp --frame 1388";
