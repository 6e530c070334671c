//! The errors of keys, secrets and the files that have them.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

/// The reason why a key or a secret could not be made, read, or written. No error shows a secret.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum IdentityError {
    /// A file could not be read.
    #[error("reading the {what} in {}: {why}", path.display())]
    Unreadable {
        /// What the file should have.
        what: &'static str,
        /// The path of the file.
        path: PathBuf,
        /// The error of the operating system.
        why: io::Error,
    },
    /// A file could not be written.
    #[error("writing the {what} to {}: {why}", path.display())]
    Unwritable {
        /// The content that the file was to get.
        what: &'static str,
        /// The path of the file.
        path: PathBuf,
        /// The error of the operating system.
        why: io::Error,
    },
    /// A file with a secret is open to others than its owner.
    #[error(
        "the {what} in {0} has mode {mode:04o}, so that others than its owner may use it: run \
         `chmod 600 {0}`, and make a new {what} if somebody may have read it",
        path.display()
    )]
    OpenToOthers {
        /// What the file has.
        what: &'static str,
        /// The path of the file.
        path: PathBuf,
        /// The permission bits of the file.
        mode: u32,
    },
    /// A file that says who is trusted may be written by others than its owner.
    #[error(
        "the {what} in {0} has mode {mode:04o}, so that others than its owner may add keys: run \
         `chmod go-w {0}`, and check the keys in it",
        path.display()
    )]
    WritableByOthers {
        /// What the file has.
        what: &'static str,
        /// The path of the file.
        path: PathBuf,
        /// The permission bits of the file.
        mode: u32,
    },
    /// A file is longer than any valid one.
    #[error(
        "the {what} in {} has more than {most} bytes: is it the right file?",
        path.display()
    )]
    TooLong {
        /// What the file should have.
        what: &'static str,
        /// The path of the file.
        path: PathBuf,
        /// The most bytes that a valid file has.
        most: u64,
    },
    /// A file with a private key is in the way of another one.
    #[error(
        "writing a private key to {0}, where there is a file already: a key that is overwritten is \
         lost, so name another file, or move {0} away",
        path.display()
    )]
    Exists {
        /// The path of the file.
        path: PathBuf,
    },
    /// A file has no private key.
    #[error(
        "{} has no private key: expected one line with `doorbell-private-key-1` and 64 hexadecimal \
         digits, as `PrivateKey::save` writes it",
        path.display()
    )]
    NotAPrivateKey {
        /// The path of the file.
        path: PathBuf,
    },
    /// A text is no public key.
    #[error("`{found}` is no public key, which has 64 hexadecimal digits")]
    NotAPublicKey {
        /// The text, or as much of it as an error should show.
        found: String,
    },
    /// A line of a file can't be understood.
    #[error("line {line} of {}: {why}", path.display())]
    Line {
        /// The path of the file.
        path: PathBuf,
        /// The number of the line, counted from 1.
        line: usize,
        /// What the line should be, and what it is.
        why: String,
    },
    /// A shared secret is too short to be a random one.
    #[error(
        "a shared secret of {found} bytes, where {least} are the fewest: whoever records a \
         handshake can try all short ones. Draw one with `head -c 32 /dev/urandom | base64`"
    )]
    ShortSecret {
        /// How many bytes the secret has.
        found: usize,
        /// The fewest bytes that a secret may have.
        least: usize,
    },
    /// The operating system gave no random numbers.
    #[error("drawing a private key: the operating system gave no random numbers ({why})")]
    NoRandomness {
        /// The error as the Noise library describes it.
        why: String,
    },
    /// An address can't be remembered, since it would not be one word in a file.
    #[error(
        "`{address}` as the address of a peer whose key is remembered: an address is 1 to {most} \
         characters without white space, and does not begin with `#`"
    )]
    Address {
        /// The address, with unprintable characters escaped.
        address: String,
        /// The most bytes that an address may have.
        most: usize,
    },
    /// As many peers are remembered as can be.
    #[error(
        "the key of another peer is to be remembered, and {most} are, which is the most: remove \
         lines of peers that are gone, and name peers by host and not by port"
    )]
    Full {
        /// The most peers whose keys are remembered.
        most: usize,
    },
}
