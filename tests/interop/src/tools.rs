//! Programs of others, and what is said when they are not there or do not do it.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Error;

/// A program that the harness runs, and the package that it comes in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tool {
    pub name: &'static str,
    pub package: &'static str,
}

impl Tool {
    pub const APT_GET: Self = Self { name: "apt-get", package: "apt" };
    pub const DPKG_DEB: Self = Self { name: "dpkg-deb", package: "dpkg" };
    pub const GZIP: Self = Self { name: "gzip", package: "gzip" };
    pub const QEMU: Self = Self { name: "qemu-system-x86_64", package: "qemu-system-x86" };
    pub const XZ: Self = Self { name: "xz", package: "xz-utils" };

    /// A command that speaks no language but its own.
    pub fn command(self) -> Command {
        let mut command = Command::new(self.name);
        command.env("LC_ALL", "C");
        command
    }

    /// Runs it and returns what it prints. It must succeed.
    pub fn run<S: AsRef<OsStr>>(
        self,
        arguments: impl IntoIterator<Item = S>,
        folder: &Path,
    ) -> Result<Vec<u8>, Error> {
        let mut command = self.command();
        let output = command.args(arguments).current_dir(folder).output();
        let output = output.map_err(|source| self.missing(source))?;
        if output.status.success() {
            return Ok(output.stdout);
        }
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        Err(Error::Failed { command: format!("{command:?}"), said })
    }

    /// What to say when it can't be started.
    pub fn missing(self, source: io::Error) -> Error {
        Error::Missing { program: self.name, package: self.package, source }
    }
}

/// Makes an error of a file's or folder's of what the system says.
pub(crate) fn at(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error {
    let path: PathBuf = path.to_owned();
    move |source| Error::File { what, path, source }
}
