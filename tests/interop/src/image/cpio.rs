//! The archive format that the kernel unpacks at its start: cpio, "newc".

use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;

const MAGIC: &str = "070701";
const END: &str = "TRAILER!!!";

/// Where the bytes of a file are.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Bytes {
    /// Here.
    Here(Vec<u8>),
    /// In a file of the host.
    At(PathBuf),
}

/// A file: its bytes, and whether it may be run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct File {
    pub bytes: Bytes,
    pub runs: bool,
}

impl File {
    pub fn text(text: &str) -> Self {
        Self { bytes: Bytes::Here(text.as_bytes().to_vec()), runs: false }
    }

    pub fn program(text: &str) -> Self {
        Self { runs: true, ..Self::text(text) }
    }
}

/// What a name stands for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Entry {
    Folder,
    Link(String),
    File(File),
}

impl Entry {
    const fn mode(&self) -> u32 {
        match self {
            Self::Folder => 0o040_755,
            Self::Link(_) => 0o120_777,
            Self::File(File { runs: true, .. }) => 0o100_755,
            Self::File(File { runs: false, .. }) => 0o100_644,
        }
    }
}

/// Writes an archive. All that is in it is root's.
pub struct Writer<W> {
    to: W,
    count: u32,
}

impl<W: Write> Writer<W> {
    pub const fn new(to: W) -> Self {
        Self { to, count: 0 }
    }

    /// Adds what has this name, without a slash in front. A folder comes before what is in it.
    pub fn write(&mut self, name: &str, entry: &Entry) -> io::Result<()> {
        let read;
        let bytes: &[u8] = match entry {
            Entry::Folder => &[],
            Entry::Link(to) => to.as_bytes(),
            Entry::File(File { bytes: Bytes::Here(bytes), .. }) => bytes,
            Entry::File(File { bytes: Bytes::At(path), .. }) => {
                read = fs::read(path)?;
                &read
            }
        };
        self.record(name, entry.mode(), bytes)
    }

    fn record(&mut self, name: &str, mode: u32, bytes: &[u8]) -> io::Result<()> {
        self.count += 1;
        let too_long = |_| io::Error::new(io::ErrorKind::FileTooLarge, name.to_owned());
        let len = u32::try_from(bytes.len()).map_err(too_long)?;
        let name_len = u32::try_from(name.len() + 1).map_err(too_long)?;
        // Number, mode, owner, group, links, time, length, four numbers of devices, the name's
        // length, and a sum that this variant does not have.
        let fields = [self.count, mode, 0, 0, 1, 0, len, 0, 0, 0, 0, name_len, 0];
        let mut header = MAGIC.to_owned();
        for field in fields {
            header += &format!("{field:08x}");
        }
        header += name;
        header.push('\0');
        self.padded(header.as_bytes())?;
        self.padded(bytes)
    }

    fn padded(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.to.write_all(bytes)?;
        self.to.write_all(&[0; 3][..bytes.len().wrapping_neg() & 3])
    }

    /// Ends the archive.
    pub fn finish(mut self) -> io::Result<W> {
        self.record(END, 0, &[])?;
        Ok(self.to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_and_bytes_end_at_multiples_of_four() {
        for name in ["a", "ab", "abc", "abcd"] {
            for len in 0..5 {
                let mut archive = Writer::new(Vec::new());
                let file = File { bytes: Bytes::Here(vec![7; len]), runs: true };
                archive.write(name, &Entry::File(file)).expect("memory takes it");
                let made = archive.finish().expect("memory takes it");
                let data = (110 + name.len() + 1).next_multiple_of(4);
                let end = data + len.next_multiple_of(4);
                assert_eq!(&made[..14], b"07070100000001");
                assert_eq!(&made[14..22], b"000081ed");
                assert_eq!(made[data..data + len], vec![7; len]);
                assert_eq!(&made[end..end + 6], MAGIC.as_bytes());
                assert_eq!(made.len(), end + (110 + END.len() + 1).next_multiple_of(4));
            }
        }
    }
}
