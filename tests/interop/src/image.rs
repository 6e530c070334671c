//! What a guest boots: a kernel, and an archive of all files that it has.
//!
//! It is made once of Debian's packages and kept below the build's target folder, under a key that
//! has all their versions and what else goes into it. It takes no privilege.

mod cpio;
mod modules;
mod tree;

use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::Error;
use crate::packages::Packages;
use crate::tools::{Tool, at};

use tree::Tree;

/// What an image is made by, beside the packages: if any of it changes, so must the key.
const MAKERS: [&str; 6] = [
    include_str!("image.rs"),
    include_str!("image/cpio.rs"),
    include_str!("image/modules.rs"),
    include_str!("image/tree.rs"),
    INIT,
    AGENT,
];

/// The program that the kernel starts, and the agent that this program becomes.
const INIT: &str = include_str!("../guest/init");
const AGENT: &str = include_str!("../guest/agent.py");

/// The names of the files of an image.
const KERNEL: &str = "vmlinuz";
const ARCHIVE: &str = "initramfs.cpio";

/// What a guest boots.
#[derive(Clone, Debug)]
pub struct Image {
    folder: PathBuf,
    packages: Packages,
}

impl Image {
    /// Finds the image, or makes it, which takes a network and less than a minute. In a lab there
    /// is no network: it is to be made before.
    ///
    /// # Errors
    /// Where something is missing, as [`Error::is_for_want`] tells, or a package is not what it
    /// was.
    pub fn prepare() -> Result<Self, Error> {
        Self::prepare_in(&cache())
    }

    /// The same with a folder of one's own to keep it in.
    ///
    /// # Errors
    /// As [`prepare`](Self::prepare).
    pub fn prepare_in(cache: &Path) -> Result<Self, Error> {
        fs::create_dir_all(cache).map_err(at("making the folder", cache))?;
        let packages = Packages::resolve(cache)?;
        let image = Self { folder: cache.join(format!("image-{:016x}", key(&packages))), packages };
        if image.folder.exists() {
            return Ok(image);
        }
        // Whoever comes second waits, and finds it. The lock ends with the process.
        let path = cache.join("lock");
        let lock = File::create(&path).map_err(at("making", &path))?;
        lock.lock().map_err(at("locking", &path))?;
        if !image.folder.exists() {
            image.make(cache)?;
        }
        Ok(image)
    }

    /// What it is made of.
    pub fn packages(&self) -> &Packages {
        &self.packages
    }

    /// The kernel.
    pub fn kernel(&self) -> PathBuf {
        self.folder.join(KERNEL)
    }

    /// The archive of all other files.
    pub fn archive(&self) -> PathBuf {
        self.folder.join(ARCHIVE)
    }

    /// Makes it, in a folder that gets its name when it is whole.
    fn make(&self, cache: &Path) -> Result<(), Error> {
        let packages = &self.packages;
        let have = packages.fetch(cache)?;
        let unpacked = cache.join("unpacked");
        let [kernel, others, made] = ["kernel", "others", "made"].map(|name| unpacked.join(name));
        // One that was killed may have left something.
        let _ = fs::remove_dir_all(&unpacked);
        for folder in [&kernel, &others, &made] {
            fs::create_dir_all(folder).map_err(at("making the folder", folder))?;
        }
        unpack(&have.join(&packages.kernel), &kernel)?;
        for package in &packages.others {
            unpack(&have.join(package), &others)?;
        }
        let mut tree = Tree::default();
        tree.take_system(&others)?;
        tree.take_modules(modules::find(&kernel)?);
        tree.add("init", cpio::File::program(INIT));
        tree.add("usr/lib/doorbell/agent.py", cpio::File::text(AGENT));
        write(&tree, &made.join(ARCHIVE))?;
        take_kernel(&kernel, &made.join(KERNEL))?;
        fs::rename(&made, &self.folder).map_err(at("naming the image", &self.folder))?;
        fs::remove_dir_all(&unpacked).map_err(at("removing", &unpacked))
    }
}

/// Where images are kept: beside what Cargo builds.
fn cache() -> PathBuf {
    let program = std::env::current_exe().unwrap_or_default();
    let is_target = |folder: &&Path| folder.join("CACHEDIR.TAG").exists();
    let target = program.ancestors().find(is_target).map(Path::to_owned);
    target.unwrap_or_else(std::env::temp_dir).join("interop")
}

/// Should another version of Rust compute it otherwise, the image is made once more.
fn key(packages: &Packages) -> u64 {
    let mut hasher = DefaultHasher::new();
    MAKERS.hash(&mut hasher);
    packages.all().for_each(|file| file.hash(&mut hasher));
    hasher.finish()
}

fn unpack(package: &Path, folder: &Path) -> Result<(), Error> {
    let arguments = ["-x".as_ref(), package.as_os_str(), folder.as_os_str()];
    Tool::DPKG_DEB.run(arguments, folder).map(drop)
}

fn write(tree: &Tree, path: &Path) -> Result<(), Error> {
    let file = File::create(path).map_err(at("making", path))?;
    let mut archive = cpio::Writer::new(BufWriter::new(file));
    for (name, entry) in tree.entries() {
        archive.write(name, entry).map_err(at("writing", path))?;
    }
    archive.finish().and_then(|mut file| file.flush()).map_err(at("writing", path))
}

fn take_kernel(unpacked: &Path, to: &Path) -> Result<(), Error> {
    let boot = unpacked.join("boot");
    let entries = fs::read_dir(&boot).map_err(at("reading the folder", &boot))?;
    let mut paths = entries.flatten().map(|entry| entry.path());
    let is_kernel = |path: &PathBuf| {
        path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"vmlinuz"))
    };
    let lacking = || Error::Lacking { what: "kernel".to_owned() };
    let kernel = paths.find(is_kernel).ok_or_else(lacking)?;
    fs::copy(&kernel, to).map(drop).map_err(at("copying", &kernel))
}
