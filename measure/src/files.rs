//! The files that a report is written to, and the terminal.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use console::Term;
use doorbell_report::Report;

use crate::{interrupts, out, usage};

/// How wide a text is that does not go to a terminal.
const WIDTH: usize = 132;

/// How many characters fit into a line of standard output.
pub fn width() -> usize {
    terminal_width().unwrap_or(WIDTH)
}

/// How many characters fit into a line of standard output; `None` if that is no terminal.
pub fn terminal_width() -> Option<usize> {
    Term::stdout().size_checked().map(|(_, columns)| columns.into())
}

/// A report that is to be written. Until it is finished its content is beside its place, so that an
/// older report stays whole whatever happens. What is no regular file, as a device or a pipe, is
/// written to directly.
#[derive(Debug)]
pub struct Page {
    place: Option<(PathBuf, Option<PathBuf>, File)>,
}

impl Page {
    /// Opens the file, before anybody waits for the measurements: where it can't be written, that
    /// is to be known at once. Without a path nothing is written.
    pub fn begin(path: Option<PathBuf>) -> anyhow::Result<Self> {
        let Some(path) = path else { return Ok(Self { place: None }) };
        let context = || format!("writing the report to {}", path.display());
        // A symbolic link stays, and what it leads to is written.
        let target = fs::canonicalize(&path).unwrap_or_else(|_| path.clone());
        let kind = fs::metadata(&target).map(|found| found.file_type());
        if kind.as_ref().is_ok_and(|kind| !kind.is_file() && !kind.is_dir()) {
            let file = File::options().write(true).open(&target).with_context(context)?;
            return Ok(Self { place: Some((target, None, file)) });
        }
        if kind.is_ok_and(|kind| kind.is_dir()) || path.file_name().is_none() {
            let why = anyhow!("{}: that is a directory; name a file in it", context());
            return Err(usage::wrong(why));
        }
        let mut beside = target.clone().into_os_string();
        beside.push(format!(".{}.part", std::process::id()));
        let beside = PathBuf::from(beside);
        let file = interrupts::create_temporary(&beside).with_context(context)?;
        Ok(Self { place: Some((target, Some(beside), file)) })
    }

    /// Writes the report, and says where it is.
    pub fn finish(mut self, report: &Report) -> anyhow::Result<()> {
        let Some((path, beside, file)) = &mut self.place else { return Ok(()) };
        let html = report.to_html();
        let written = file.write_all(html.as_bytes()).and_then(|()| match beside {
            Some(beside) => file.sync_all().and_then(|()| fs::rename(beside, &*path)),
            None => Ok(()),
        });
        written.with_context(|| format!("writing the report to {}", path.display()))?;
        out::note(format_args!("doorbell: the report is {}", path.display()));
        self.place = None;
        Ok(())
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        if let Some((_, Some(beside), _)) = &self.place {
            // What was begun is of no use to anybody.
            let _ = fs::remove_file(beside);
        }
    }
}

/// Makes the directory for figures, if there is none, before anybody waits for the measurements.
pub fn make_directory(directory: Option<&Path>) -> anyhow::Result<()> {
    let Some(directory) = directory else { return Ok(()) };
    let shown = directory.display();
    fs::create_dir_all(directory).with_context(|| format!("making the directory {shown}"))
}

/// Writes each figure as an SVG file into a directory.
pub fn write_figures(directory: &Path, report: &Report) -> anyhow::Result<()> {
    let shown = directory.display();
    for (name, svg) in report.svgs() {
        let path = directory.join(&name);
        fs::write(path, svg).with_context(|| format!("writing {name} to {shown}"))?;
    }
    Ok(())
}
