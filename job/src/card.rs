//! The description of itself that each process sends to the others.

use std::fmt;
use std::io::Read;

use object::{Object, ReadCache};
use sha2::{Digest, Sha256};

use crate::error::JobError;

/// A process's description of itself, which it sends to the others.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Card {
    /// The name of the host.
    pub host: String,
    /// An identifier that processes share exactly if they are on one host, in one network
    /// namespace.
    pub machine: String,
    /// The name of the program's file.
    pub program: String,
    /// An identifier of the program's build: the linker's build id in the file, or a hash of the
    /// file.
    pub build: String,
}

impl Card {
    /// The card of this process.
    pub fn of_process() -> Self {
        let path = std::env::current_exe().ok();
        let program = path.as_ref().and_then(|path| path.file_name());
        let program = program.map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        let host = nix::unistd::gethostname().unwrap_or_default().to_string_lossy().into_owned();
        Self { host, machine: machine(), program, build: build() }
    }

    /// Reads the card of a process, as [`Display`](fmt::Display) has written it.
    ///
    /// # Errors
    /// When the text is not four fields.
    pub fn parse(rank: usize, text: &str) -> Result<Self, JobError> {
        let fields: Option<Vec<String>> = text.split(' ').map(unescaped).collect();
        let card = fields.and_then(|fields| <[String; 4]>::try_from(fields).ok());
        let [host, machine, program, build] =
            card.ok_or_else(|| JobError::Card { rank, found: text.to_owned() })?;
        Ok(Self { host, machine, program, build })
    }
}

/// The four fields with spaces between.
impl fmt::Display for Card {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, machine, program, build } = self;
        let fields = [host, machine, program, build].map(|field| escaped(field));
        f.write_str(&fields.join(" "))
    }
}

/// A field without spaces and line ends, and not empty.
pub(crate) fn escaped(field: &str) -> String {
    let mut text = String::from("=");
    for letter in field.chars() {
        match letter {
            '%' => text.push_str("%25"),
            ' ' => text.push_str("%20"),
            '\n' => text.push_str("%0a"),
            '\r' => text.push_str("%0d"),
            _ => text.push(letter),
        }
    }
    text
}

pub(crate) fn unescaped(text: &str) -> Option<String> {
    let mut parts = text.strip_prefix('=')?.split('%');
    let mut field = parts.next()?.to_owned();
    for part in parts {
        let code = u8::from_str_radix(part.get(..2)?, 16).ok()?;
        field.push(char::from(code));
        field.push_str(&part[2..]);
    }
    Some(field)
}

/// The host since it was started, and the network namespace of this process.
fn machine() -> String {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let namespace = std::fs::read_link("/proc/self/ns/net").unwrap_or_default();
    format!("{} {}", boot.trim(), namespace.display())
}

/// Returns an identifier of this program's build: the linker's build id in the file, or else a hash
/// of the file; empty if the file can't be read.
fn build() -> String {
    let file = std::fs::File::open("/proc/self/exe").ok();
    let found = file.and_then(|file| linked(&file).or_else(|| hash(file).ok()));
    let found = found.unwrap_or_default();
    found.iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

/// The identifier that the linker has derived from what it has linked.
fn linked(file: &std::fs::File) -> Option<Vec<u8>> {
    let cache = ReadCache::new(file);
    let file = object::File::parse(&cache).ok()?;
    Some(file.build_id().ok()??.to_vec())
}

fn hash(mut file: std::fs::File) -> std::io::Result<Vec<u8>> {
    let (mut hash, mut chunk) = (Sha256::new(), vec![0; 1 << 16]);
    loop {
        match file.read(&mut chunk)? {
            0 => return Ok(hash.finalize().to_vec()),
            count => hash.update(&chunk[..count]),
        }
    }
}

/// Checks that all processes of a program run the same build of it.
pub(crate) fn check_builds(cards: &[Card]) -> Result<(), JobError> {
    let mut builds: Vec<(usize, &Card)> = Vec::new();
    for (rank, card) in cards.iter().enumerate().filter(|(_, card)| !card.build.is_empty()) {
        match builds.iter().find(|(_, other)| other.program == card.program) {
            None => builds.push((rank, card)),
            Some((_, other)) if other.build == card.build => {}
            Some(&(first, other)) => {
                let (program, host) = (card.program.clone(), card.host.clone());
                let (other, other_host) = (first, other.host.clone());
                return Err(JobError::Build { rank, host, program, other, other_host });
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_card_is_read_as_it_was_written() {
        let card =
            Card { host: String::new(), program: "my prog a%b\n".to_owned(), ..Card::of_process() };
        let text = card.to_string();
        assert!(!text.contains('\n'));
        assert_eq!(Card::parse(0, &text).unwrap(), card);
        for wrong in ["", "=a =b", "a b c d", "= = = =%2", "= = = =%zz"] {
            assert!(Card::parse(3, wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn two_builds_of_one_program_are_told_apart_and_two_programs_are_not() {
        let own = Card::of_process();
        assert!(!own.build.is_empty() && !own.program.is_empty());
        let other = Card { program: "other".into(), build: "0".into(), ..own.clone() };
        assert!(check_builds(&[own.clone(), other, own.clone()]).is_ok());
        let newer = Card { build: "0".into(), host: "b".into(), ..own.clone() };
        let why = check_builds(&[own.clone(), own, newer]).unwrap_err().to_string();
        assert!(why.contains("process 2 on b") && why.contains("process 0"), "{why}");
    }
}
