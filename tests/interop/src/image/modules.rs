//! Which of the kernel's modules the guest needs, and in which order they are to be loaded.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::Error;
use crate::tools::{Tool, at};

/// What the guest is to have. What they depend on follows.
const WANTED: [&str; 8] = [
    "virtio_pci",
    "virtio_console",
    "virtio_net",
    // rxe asks for it by what it does, which only modprobe would understand.
    "crc32_generic",
    "rdma_rxe",
    "ib_uverbs",
    "rdma_ucm",
    "ib_umad",
];

/// A module, ready to be loaded.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Module {
    pub name: String,
    pub bytes: Vec<u8>,
}

/// Finds what is wanted in the unpacked package of a kernel, each after what it depends on.
pub fn find(unpacked: &Path) -> Result<Vec<Module>, Error> {
    // Some packages have the folder in /lib, some in /usr/lib.
    let folders = ["lib/modules", "usr/lib/modules"].map(|folder| unpacked.join(folder));
    let mut files = BTreeMap::new();
    for folder in folders.iter().filter(|folder| folder.exists()) {
        list(folder, &mut files)?;
    }
    let mut found = Vec::new();
    for name in WANTED {
        add(name, &files, &mut found)?;
    }
    Ok(found)
}

/// Lists the modules below a folder by their names.
fn list(folder: &Path, files: &mut BTreeMap<String, PathBuf>) -> Result<(), Error> {
    for entry in fs::read_dir(folder).map_err(at("reading the folder", folder))?.flatten() {
        let path = entry.path();
        let name = entry.file_name().to_string_lossy().replace('-', "_");
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            list(&path, files)?;
        } else if let Some((name, "ko" | "ko.xz")) = name.split_once('.') {
            files.insert(name.to_owned(), path);
        }
    }
    Ok(())
}

fn add(
    name: &str,
    files: &BTreeMap<String, PathBuf>,
    found: &mut Vec<Module>,
) -> Result<(), Error> {
    if found.iter().any(|module| module.name == name) {
        return Ok(());
    }
    let lacking = || Error::Lacking { what: format!("kernel module {name}") };
    let bytes = read(files.get(name).ok_or_else(lacking)?)?;
    for other in dependencies(&bytes) {
        add(&other, files, found)?;
    }
    found.push(Module { name: name.to_owned(), bytes });
    Ok(())
}

fn read(path: &Path) -> Result<Vec<u8>, Error> {
    if path.extension().is_some_and(|extension| extension == "xz") {
        return Tool::XZ.run(["-dc".as_ref(), path.as_os_str()], Path::new("/"));
    }
    fs::read(path).map_err(at("reading", path))
}

/// What a module says that it depends on: a text between zeros, such as `depends=ib_core,virtio`.
fn dependencies(module: &[u8]) -> Vec<String> {
    let texts = module.split(|&byte| byte == 0);
    let listed = texts.filter_map(|text| text.strip_prefix(b"depends=")).next().unwrap_or_default();
    let listed = String::from_utf8_lossy(listed).replace('-', "_");
    listed.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_names_what_it_depends_on() {
        let module = b"\x7fELF\0license=GPL\0depends=ib_core,crc32-generic\0retpoline=Y\0";
        assert_eq!(dependencies(module), ["ib_core", "crc32_generic"]);
        assert!(dependencies(b"\0depends=\0depend=a\0").is_empty());
        assert!(dependencies(b"").is_empty());
    }
}
