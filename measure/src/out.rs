//! Standard output, which may be a full disk or a pipe that nobody reads, and standard error.
//!
//! Texts for people may be coloured. The escape sequences stay on terminals alone: `NO_COLOR` takes
//! them off there, too, and `CLICOLOR_FORCE` leaves them everywhere.

use std::error::Error;
use std::fmt;
use std::io::{self, ErrorKind, Write};

use anstyle::{AnsiColor, Style};
use anyhow::Context;

/// The number of the form of all JSON that commands print, in the field `schema`. Fields may be
/// added under the same number; where one changes its meaning or goes, the number grows.
pub const SCHEMA: u64 = 1;

/// The style of headings.
pub const HEAD: Style = Style::new().bold();
/// The style of what works.
pub const GOOD: Style = AnsiColor::Green.on_default();
/// The style of what needs somebody's attention.
pub const CAUTION: Style = AnsiColor::Yellow.on_default();
/// The style of what does not work, and of errors.
pub const BAD: Style = AnsiColor::Red.on_default().bold();

/// The beginning of lines on standard error that are of this command.
const NAME: &str = "doorbell:";

/// The exit status of a command whose output nobody reads any more: that which shells give for a
/// program that `SIGPIPE` has ended.
pub const UNREAD: u8 = 128 + 13;

/// The error that nobody reads standard output any more. The command ends by it without a message,
/// since whoever has closed the pipe knows.
#[derive(Debug)]
pub struct Unread;

impl fmt::Display for Unread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("nobody reads standard output")
    }
}

impl Error for Unread {}

/// Prints a text for programs, as it is.
///
/// # Errors
/// [`Unread`] when nobody reads what is printed, and another error when it can't be written.
pub fn print(text: &str) -> anyhow::Result<()> {
    write(&mut io::stdout().lock(), text)
}

/// Prints a text for people, whose escape sequences for colours stay on terminals alone.
///
/// # Errors
/// As [`print()`].
pub fn show(text: &str) -> anyhow::Result<()> {
    write(&mut anstream::stdout().lock(), text)
}

fn write(out: &mut impl Write, text: &str) -> anyhow::Result<()> {
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(why) if why.kind() == ErrorKind::BrokenPipe => Err(Unread.into()),
        printed => printed.context("printing what was found to standard output"),
    }
}

/// Prints a note for people to standard error. Where it can't be written nobody misses it.
pub fn note(text: impl fmt::Display) {
    complain(&format!("{text}\n"), HEAD);
}

/// Prints an error to standard error. Where it can't be written, the exit status tells.
pub fn error(text: &str) {
    complain(text, BAD);
}

/// Prints to standard error what another process of this program has said there.
pub fn pass_on(said: &[u8]) {
    let _ = io::stderr().lock().write_all(said);
}

/// Prints a text to standard error, with the command's name at the beginning in a style.
fn complain(text: &str, style: Style) {
    let told = match text.strip_prefix(NAME) {
        Some(rest) => format!("{}{rest}", styled(NAME, style)),
        None => text.to_owned(),
    };
    // In one piece: the two ends of a pair speak at once.
    let told = match anstream::AutoStream::choice(&io::stderr()) {
        anstream::ColorChoice::Never => anstream::adapter::strip_str(&told).to_string(),
        _ => told,
    };
    let _ = io::stderr().lock().write_all(told.as_bytes());
}

/// A text in a style, for [`show`].
pub fn styled(text: &str, style: Style) -> String {
    format!("{style}{text}{style:#}")
}

/// A text whose lines have `width` characters at most, or those of a word where that is longer. What
/// continues a line begins with `indent`.
pub fn wrapped(text: &str, width: usize, indent: &str) -> String {
    let lines = text.split_inclusive('\n').map(|line| match shown_width(line) <= width {
        true => line.to_owned(),
        false => broken(line, width, indent),
    });
    lines.collect()
}

/// A line that is too long, in several.
fn broken(line: &str, width: usize, indent: &str) -> String {
    let mut text = String::new();
    let mut used = 0;
    for (number, word) in line.split(' ').enumerate() {
        let length = shown_width(word);
        if number > 0 && used + 1 + length > width {
            text = text.trim_end().to_owned() + "\n" + indent;
            used = shown_width(indent);
        } else if number > 0 {
            text.push(' ');
            used += 1;
        }
        text += word;
        used += length;
    }
    text
}

/// How many characters of a text are seen: all but the end of the line and escape sequences.
fn shown_width(text: &str) -> usize {
    anstream::adapter::strip_str(text.trim_end_matches('\n')).to_string().chars().count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_wrapped_between_words_and_styles_take_no_room() {
        assert_eq!(wrapped("one two three", 9, "  "), "one two\n  three");
        assert_eq!(wrapped("incomprehensible one", 4, ""), "incomprehensible\none");
        let good = styled("one", GOOD);
        assert_eq!(wrapped(&format!("{good} two three"), 7, ""), format!("{good} two\nthree"));
        assert_eq!(wrapped("one two three", usize::MAX, ""), "one two three");
        assert_eq!(wrapped("a  b\n  one two\n", 5, "    "), "a  b\n  one\n    two\n");
    }
}
