//! All files of a guest by their names.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::Error;
use crate::tools::{Tool, at};

use super::cpio::{Bytes, Entry, File};
use super::modules::Module;

/// Folders that are names of others below `usr`, wherever a package has put its files.
const MERGED: [&str; 4] = ["bin", "lib", "lib64", "sbin"];

/// What the packages have and a guest can do without.
const LEFT_OUT: [&str; 23] = [
    "etc/init.d",
    "usr/lib/python3.11/ensurepip",
    "usr/lib/systemd",
    "usr/lib/udev",
    "usr/lib/x86_64-linux-gnu/gconv",
    "usr/share/bash-completion",
    "usr/share/bug",
    "usr/share/doc",
    "usr/share/doc-base",
    "usr/share/gcc",
    "usr/share/gdb",
    "usr/share/i18n",
    "usr/share/icons",
    "usr/share/info",
    "usr/share/initramfs-tools",
    "usr/share/lintian",
    "usr/share/locale",
    "usr/share/man",
    "usr/share/pixmaps",
    "usr/share/applications",
    "usr/share/perl5",
    "usr/share/zoneinfo",
    "var",
];

/// The tests that RDMA's libraries are tested with. They are among the documentation.
const TESTS: &str = "usr/share/doc/rdma-core/tests";

/// All files of a guest, folders before what is in them.
#[derive(Default, Debug)]
pub struct Tree {
    entries: BTreeMap<String, Entry>,
}

impl Tree {
    pub fn entries(&self) -> impl Iterator<Item = (&str, &Entry)> {
        self.entries.iter().map(|(name, entry)| (name.as_str(), entry))
    }

    /// Adds a file, and the folders that it is in.
    pub fn add(&mut self, name: &str, file: File) {
        self.insert(name, Entry::File(file));
    }

    fn insert(&mut self, name: &str, entry: Entry) {
        for (at, _) in name.match_indices('/') {
            self.entries.entry(name[..at].to_owned()).or_insert(Entry::Folder);
        }
        self.entries.insert(name.to_owned(), entry);
    }

    /// Adds the modules, and a list in the order in which they are to be loaded.
    pub fn take_modules(&mut self, modules: Vec<Module>) {
        let order: String = modules.iter().map(|module| format!("{}\n", module.name)).collect();
        self.add("usr/lib/doorbell/modules/order", File::text(&order));
        for Module { name, bytes } in modules {
            let file = File { bytes: Bytes::Here(bytes), runs: false };
            self.add(&format!("usr/lib/doorbell/modules/{name}.ko"), file);
        }
    }

    /// Adds what the unpacked packages have and the guest needs.
    pub fn take_system(&mut self, unpacked: &Path) -> Result<(), Error> {
        let tests = unpacked.join(TESTS);
        if tests.exists() {
            // The longer ones are compressed.
            Tool::GZIP.run(["-dqr".as_ref(), tests.as_os_str()], unpacked)?;
            self.take(&tests, TESTS)?;
        }
        self.take(unpacked, "")?;
        for name in MERGED {
            self.insert(name, Entry::Link(format!("usr/{name}")));
        }
        // Scripts begin with it.
        self.insert("usr/bin/sh", Entry::Link("dash".to_owned()));
        Ok(())
    }

    fn take(&mut self, folder: &Path, name: &str) -> Result<(), Error> {
        for entry in fs::read_dir(folder).map_err(at("reading the folder", folder))?.flatten() {
            let (path, own) = (entry.path(), entry.file_name());
            let name = match (name, own.to_string_lossy()) {
                ("", own) if MERGED.contains(&&*own) => format!("usr/{own}"),
                ("", own) => own.into_owned(),
                (name, own) => format!("{name}/{own}"),
            };
            if LEFT_OUT.contains(&name.as_str()) {
                continue;
            }
            let about = entry.metadata().map_err(at("looking at", &path))?;
            if about.is_dir() {
                self.take(&path, &name)?;
            } else if about.is_symlink() {
                let to = fs::read_link(&path).map_err(at("reading the link", &path))?;
                self.insert(&name, Entry::Link(to.to_string_lossy().into_owned()));
            } else {
                let runs = about.permissions().mode() & 0o100 != 0;
                self.add(&name, File { bytes: Bytes::At(path), runs });
            }
        }
        Ok(())
    }
}
