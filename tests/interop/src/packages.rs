//! Debian's packages that a guest is made of: which they are, and where they are had from.
//!
//! `apt-get` says what is needed by a system that has nothing yet, and downloads it; nothing is
//! installed, and an ordinary user may do it. What the host has installed does not matter.

use std::fs;
use std::path::{Path, PathBuf};

use crate::Error;
use crate::tools::{Tool, at};

/// What is wanted in the guest. The rest follows.
const WANTED: [&str; 9] = [
    "busybox-static",
    // Busybox's own shell takes its own commands for those of others, such as `ip`.
    "dash",
    "ibverbs-providers",
    "ibverbs-utils",
    "iproute2",
    "perftest",
    "python3-minimal",
    "python3-pyverbs",
    "rdmacm-utils",
];

/// What depends on the newest kernel.
const KERNEL: &str = "linux-image-amd64";

/// How names begin of packages that only installing takes, or a system that is run for long.
const LEFT_OUT: [&str; 30] = [
    "adduser",
    "debconf",
    "debianutils",
    "dpkg",
    "gcc-",
    "init-system-helpers",
    "libacl1",
    "libaudit",
    "libcap-ng",
    "libfile-find-rule-perl",
    "libgcrypt",
    "libgdbm",
    "libgpg-error",
    "liblz4",
    "libnumber-compare-perl",
    "libpam",
    "libperl",
    "libsemanage",
    "libsepol",
    "libsystemd",
    "libtext-glob-perl",
    "lsb-base",
    "media-types",
    "passwd",
    "pci.ids",
    "perl",
    "sysvinit-utils",
    "tar",
    "udev",
    "usrmerge",
];

/// How many lines of `apt-get` are told when it fails.
const SAID: usize = 3;

/// The packages of a guest, by the names of their files, which have their versions.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Packages {
    /// The kernel's. Of it alone, nothing that it depends on is wanted.
    pub kernel: String,
    /// The others.
    pub others: Vec<String>,
}

impl Packages {
    /// Asks what they are by now. `folder` is where files may be put.
    ///
    /// # Errors
    /// When there is no `apt-get`, or it knows of no packages.
    pub fn resolve(folder: &Path) -> Result<Self, Error> {
        let mut others = closure(folder, &WANTED)?;
        others.retain(|file| !LEFT_OUT.iter().any(|start| file.starts_with(start)));
        let is_kernel =
            |file: &String| file.starts_with("linux-image-") && !file.starts_with(KERNEL);
        let kernel = closure(folder, &[KERNEL])?.into_iter().find(is_kernel);
        let why = || format!("{KERNEL} depends on no kernel");
        Ok(Self { kernel: kernel.ok_or_else(|| Error::Packages { why: why() })?, others })
    }

    /// All of them.
    pub fn all(&self) -> impl Iterator<Item = &str> {
        std::iter::once(&self.kernel).chain(&self.others).map(String::as_str)
    }

    /// Downloads what is not there yet; returns the folder that has them all.
    ///
    /// # Errors
    /// When they can't be had.
    pub fn fetch(&self, folder: &Path) -> Result<PathBuf, Error> {
        let have = folder.join("packages");
        let incoming = folder.join("incoming");
        for folder in [&have, &incoming] {
            fs::create_dir_all(folder).map_err(at("making the folder", folder))?;
        }
        let missing: Vec<_> = self.all().filter(|file| !have.join(file).exists()).collect();
        if missing.is_empty() {
            return Ok(have);
        }
        let asked = missing.iter().map(|file| name_and_version(file));
        let arguments = ["-q", "-o", "APT::Sandbox::User=root", "download"];
        apt_get(arguments.iter().map(|&text| text.to_owned()).chain(asked), &incoming)?;
        for file in missing {
            let (from, to) = (incoming.join(file), have.join(file));
            fs::rename(&from, to).map_err(at("keeping the package", &from))?;
        }
        Ok(have)
    }
}

/// The files of the packages that a system with none needs for these.
fn closure(folder: &Path, wanted: &[&str]) -> Result<Vec<String>, Error> {
    let status = folder.join("no-packages");
    fs::write(&status, "").map_err(at("writing", &status))?;
    let options = [
        format!("Dir::State::Status={}", status.display()),
        // Or what is there already would not be named.
        format!("Dir::Cache::archives={}/", folder.display()),
        "Debug::NoLocking=1".to_owned(),
    ];
    let options = options.into_iter().flat_map(|option| ["-o".to_owned(), option]);
    let rest = ["-qq", "--no-install-recommends", "--print-uris", "install"];
    let rest = rest.iter().chain(wanted).map(|&text| text.to_owned());
    let printed = apt_get(options.chain(rest), folder)?;
    let mut files: Vec<_> = printed.lines().filter_map(file_of).map(str::to_owned).collect();
    files.sort();
    Ok(files)
}

/// The file that a line names: `'URI' FILE SIZE CHECKSUM`.
fn file_of(line: &str) -> Option<&str> {
    let (_, rest) = line.strip_prefix('\'')?.split_once("' ")?;
    rest.split(' ').next().filter(|file| file.ends_with(".deb"))
}

/// What `apt-get download` is asked for to make that file: `NAME_VERSION_ARCHITECTURE.deb`.
fn name_and_version(file: &str) -> String {
    let mut parts = file.split('_');
    let (name, version) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    format!("{name}={}", version.replace("%3a", ":"))
}

fn apt_get(arguments: impl Iterator<Item = String>, folder: &Path) -> Result<String, Error> {
    let printed = Tool::APT_GET.run(arguments, folder).map_err(|why| match why {
        // It says much the same of every package.
        Error::Failed { said, .. } => {
            let said = said.lines().take(SAID).collect::<Vec<_>>().join("; ");
            Error::Packages { why: format!("apt-get says {said}") }
        }
        other => other,
    })?;
    Ok(String::from_utf8_lossy(&printed).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_apt_names_a_file_and_the_file_a_version() {
        let line = "'http://deb.example/pool/k/kmod/kmod_30_amd64.deb' \
                    libcap2_1%3a2.66-4+deb12u3_amd64.deb 27708 MD5Sum:8e7e";
        let file = file_of(line).expect("it names one");
        assert_eq!(file, "libcap2_1%3a2.66-4+deb12u3_amd64.deb");
        assert_eq!(name_and_version(file), "libcap2=1:2.66-4+deb12u3");
        assert_eq!(file_of("Reading package lists..."), None);
    }
}
