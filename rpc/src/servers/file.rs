//! Files whose lines are the names of servers.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use doorbell_am::Name;

use super::source::LookUp;

/// The longest file that is read, in bytes.
const LONGEST: u64 = 1 << 20;

/// Reads the names of servers from a file.
pub async fn names(path: PathBuf) -> LookUp {
    tokio::task::spawn_blocking(move || read(&path)).await?
}

fn read(path: &Path) -> LookUp {
    let told = |why: &dyn std::fmt::Display| format!("{}: {why}", path.display());
    let file = File::open(path).map_err(|why| told(&why))?;
    let mut text = String::new();
    let len = file.take(LONGEST + 1).read_to_string(&mut text).map_err(|why| told(&why))?;
    if len as u64 > LONGEST {
        return Err(told(&format!("it is longer than {LONGEST} bytes")).into());
    }
    let names = parse(&text).map_err(|why| told(&why))?;
    if names.is_empty() {
        return Err(told(&"it names no server").into());
    }
    Ok(names)
}

/// The names that the lines of a text are.
fn parse(text: &str) -> Result<Vec<Name>, String> {
    let mut names = Vec::new();
    for (line, number) in text.lines().zip(1..) {
        let mut words = line.split_whitespace();
        let Some(name) = words.next().filter(|word| !word.starts_with('#')) else { continue };
        if words.next().is_some_and(|word| !word.starts_with('#')) {
            return Err(format!("line {number} has more than one name"));
        }
        names.push(name.parse().map_err(|why| format!("line {number}: {why}"))?);
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_a_file_has_a_name_or_a_comment_or_both() {
        let text = "# the east\n\n udp:192.0.2.7:5000#7\nshm:kv#2a # beside it\n  # none\n";
        let names = [Name::at("udp:192.0.2.7:5000", 7), Name::at("shm:kv", 42)];
        assert_eq!(parse(text).as_deref(), Ok(&names[..]));
    }

    #[test]
    fn a_line_that_is_no_name_is_told_by_its_number() {
        for text in ["shm:kv#2a\nnobody", "\nshm:kv#2a shm:kv#2b"] {
            let why = parse(text).expect_err("it is broken");
            assert!(why.starts_with("line 2"), "{why}");
        }
    }
}
