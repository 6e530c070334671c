//! Processes of another user of the machine, for tests of what other users may not do.
//!
//! The test starts itself again as that user, and both processes exchange lines of text:
//!
//! ```no_run
//! use doorbell_kit::{child, stranger};
//!
//! // In a function marked as a test, `a_stranger_gets_nothing`:
//! if child::part().is_some() {
//!     // As the other user.
//!     let socket = child::listen().expect("the parent says where");
//!     child::tell(std::os::unix::net::UnixStream::connect(socket).is_err());
//!     return;
//! }
//! let Some(mut stranger) = stranger::start("a_stranger_gets_nothing", "stranger") else { return };
//! stranger.say("/run/some.socket");
//! assert_eq!(stranger.hear(), "true");
//! stranger.end();
//! ```

use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use crate::child::{Child, of_test, test_again};
use crate::lab::{Namespace, passed_over};
use crate::sys;

/// The number of another user of the machine, who owns nothing and has only the rights that
/// everybody has.
///
/// Only root may start programs as another user, and in a user namespace there may be no other
/// user. In these cases the test is skipped, which is printed to standard error and counted, and
/// `None` is returned.
///
/// # Panics
/// When the test would be skipped, and the environment variable `CI` is set.
pub fn user() -> Option<u32> {
    let user = sys::ordinary_user();
    if user.is_none() {
        let why = "only root can start programs as another user, and there must be one";
        let integration = std::env::var_os("CI").is_some_and(|value| !value.is_empty());
        assert!(!integration, "{why}");
        passed_over(why);
    }
    user
}

/// The command that runs this program as another [`user`], in the folder `/`; in a namespace, if
/// one is given. `None` if there is no other user, which is printed to standard error. A command
/// that is to be [killed with its parent](crate::die_with_parent) must be told so afterwards.
///
/// # Panics
/// When this program's file can't be opened, and as [`user`].
pub fn command(namespace: Option<&Namespace>) -> Option<Command> {
    let user = user()?;
    // The other user may not be able to enter the folders of this user. A file that is already open
    // can be run.
    let program = std::env::current_exe().and_then(File::open).expect("this program has a file");
    let path = format!("/proc/self/fd/{}", program.as_raw_fd());
    let mut command = namespace.map_or_else(|| Command::new(&path), |there| there.command(&path));
    command.arg0("a stranger").current_dir("/");
    sys::hold(&mut command, program.into());
    sys::run_as(&mut command, user);
    Some(command)
}

/// Starts a test of this program again, in the named [part](crate::child::part), as another
/// [`user`]. `None` if there is no other user, which is printed to standard error.
///
/// # Panics
/// When the test can't be started, and as [`user`].
pub fn start(test: &str, part: &str) -> Option<Child> {
    Some(Child::start_by(of_test(command(None)?, test), part))
}

/// Starts a test of this program again, in the named [part](crate::child::part), in a user
/// namespace that maps no user numbers: all users look alike there, that of the new process as
/// well. `None` if there are no user namespaces, which is printed to standard error.
///
/// # Panics
/// When the environment variable `CI` is set, and the test would be passed over.
pub fn start_among_all_alike(test: &str, part: &str) -> Option<Child> {
    let mut trial = Command::new("/proc/self/exe");
    trial.arg("--list").stdout(Stdio::null());
    sys::run_without_users(&mut trial);
    if let Err(why) = trial.status() {
        let why = format!("there are no user namespaces: {why}");
        let integration = std::env::var_os("CI").is_some_and(|value| !value.is_empty());
        assert!(!integration, "{why}");
        passed_over(&why);
        return None;
    }
    let mut command = test_again(test, None);
    sys::run_without_users(&mut command);
    Some(Child::start_by(command, part))
}
