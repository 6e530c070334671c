//! Host names for the body of a test.

use std::path::Path;
use std::process::Command;

use crate::child::{test_again, test_of};

/// The environment variable that is set for a test that was started again with its own host names.
const AGAIN: &str = "DOORBELL_NAMES";

/// A script that mounts the files of a directory over those of `/etc`, and then runs another
/// program.
const MOUNT: &str = r#"for file in hosts resolv.conf nsswitch.conf; do
    if [ -e /etc/$file ]; then mount --bind "$0/$file" /etc/$file || exit 1; fi
done
exec "$@""#;

/// Runs the rest of a test of a [lab](super::test) in a process with its own host names: its
/// resolver knows the hosts of `hosts`, a text in the form of `/etc/hosts`, and asks a name server
/// at 127.0.0.1 about all others. If the test runs no such server, the resolver hears at once that
/// the port is closed. A test calls this once, with a closure; in the new process the test runs
/// from its beginning, with another lab.
///
/// # Panics
/// When the closure panics, and when files can't be mounted.
pub fn with_names<F: FnOnce()>(hosts: &str, rest: F) {
    if std::env::var_os(AGAIN).is_some() {
        return rest();
    }
    let name = test_of::<F>();
    let id = (std::process::id(), name.rsplit("::").next().unwrap_or(name));
    let files = std::env::temp_dir().join(format!("doorbell-names-{}-{}", id.0, id.1));
    write(&files, hosts);
    let again = test_again(name, None);
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", MOUNT]).arg(&files);
    command.arg(again.get_program()).args(again.get_args()).env(AGAIN, "1");
    let output = command.output().expect("util-linux is on every machine");
    std::fs::remove_dir_all(&files).expect("it was written");
    let printed = String::from_utf8_lossy(&output.stdout);
    print!("{printed}");
    eprint!("{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{name} with names of its own: {}", output.status);
    assert!(printed.contains("1 passed"), "`{name}` should be the name of one test");
}

fn write(files: &Path, hosts: &str) {
    std::fs::create_dir_all(files).expect("there is room");
    // The time-out is so long that a busy machine makes no difference.
    let servers = "nameserver 127.0.0.1\noptions timeout:30 attempts:2\n";
    let sources = "hosts: files dns\n";
    for (file, text) in [("hosts", hosts), ("resolv.conf", servers), ("nsswitch.conf", sources)] {
        std::fs::write(files.join(file), text).expect("there is room");
    }
}
