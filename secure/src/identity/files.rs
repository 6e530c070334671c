//! Files that others than their owner must not read or write.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

use zeroize::Zeroizing;

use super::error::IdentityError;

/// What others than the owner of a file must not be able to do.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Others {
    /// Others may neither read nor write: the file has a secret.
    MayNothing,
    /// Others may read, and not write: the file says who is trusted.
    MayRead,
}

/// Reads a file of at most `most` bytes, unless its mode lets others do more than they should. The
/// mode is that of the file that was opened, even if the path names another file by then.
pub(super) fn read(
    what: &'static str,
    path: &Path,
    others: Others,
    most: u64,
) -> Result<Zeroizing<Vec<u8>>, IdentityError> {
    let unreadable = |why| IdentityError::Unreadable { what, path: path.to_owned(), why };
    let file = File::open(path).map_err(unreadable)?;
    let metadata = file.metadata().map_err(unreadable)?;
    let mode = metadata.permissions().mode() & 0o7777;
    let path_buf = || path.to_owned();
    match others {
        Others::MayNothing if mode & 0o077 != 0 => {
            return Err(IdentityError::OpenToOthers { what, path: path_buf(), mode });
        }
        Others::MayRead if mode & 0o022 != 0 => {
            return Err(IdentityError::WritableByOthers { what, path: path_buf(), mode });
        }
        Others::MayNothing | Others::MayRead => {}
    }
    // With room for all bytes from the start, a secret is never moved, and leaves no copy behind.
    let room = usize::try_from(metadata.len().min(most)).unwrap_or(0).saturating_add(64);
    let mut bytes = Zeroizing::new(Vec::with_capacity(room));
    file.take(most.saturating_add(1)).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > most {
        return Err(IdentityError::TooLong { what, path: path_buf(), most });
    }
    Ok(bytes)
}

/// Reads a text file like [`read`], and returns its text.
pub(super) fn read_text(
    what: &'static str,
    path: &Path,
    others: Others,
    most: u64,
) -> Result<Zeroizing<String>, IdentityError> {
    let bytes = read(what, path, others, most)?;
    match std::str::from_utf8(&bytes) {
        Ok(text) => Ok(Zeroizing::new(text.to_owned())),
        Err(_) => {
            let why = io::Error::new(io::ErrorKind::InvalidData, "the file is no UTF-8 text");
            Err(IdentityError::Unreadable { what, path: path.to_owned(), why })
        }
    }
}

/// Makes a file that only its owner may read, with the bytes given. A file that exists already
/// stays as it is, and a file that can't be written to its end is removed.
pub(super) fn create(what: &'static str, path: &Path, bytes: &[u8]) -> Result<(), IdentityError> {
    let unwritable = |why| IdentityError::Unwritable { what, path: path.to_owned(), why };
    let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    let mut file = made.map_err(|why| match why.kind() {
        io::ErrorKind::AlreadyExists => IdentityError::Exists { path: path.to_owned() },
        _ => unwritable(why),
    })?;
    file.write_all(bytes).and_then(|()| file.sync_all()).map_err(|why| {
        let _ = fs::remove_file(path);
        unwritable(why)
    })
}

/// Appends a line to a file, which is made if there is none.
pub(super) fn append(what: &'static str, path: &Path, line: &str) -> Result<(), IdentityError> {
    let opened = OpenOptions::new().append(true).create(true).mode(0o600).open(path);
    // A single write keeps the lines of several processes apart.
    opened
        .and_then(|mut file| file.write_all(format!("{line}\n").as_bytes()))
        .map_err(|why| IdentityError::Unwritable { what, path: path.to_owned(), why })
}
