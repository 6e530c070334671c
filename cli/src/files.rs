//! The files that a report is written to, and the terminal.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Context;
use console::Term;
use doorbell_report::Report;

/// How wide a text is that does not go to a terminal.
const WIDTH: usize = 132;

/// How many characters fit into a line of standard output.
pub fn width() -> usize {
    Term::stdout().size_checked().map_or(WIDTH, |(_, columns)| columns.into())
}

/// A report that is to be written. Until it is finished its content is beside its place, so that an
/// older report stays whole whatever happens.
pub struct Page {
    place: Option<(PathBuf, PathBuf, File)>,
}

impl Page {
    /// Opens the file, before anybody waits for the measurements: where it can't be written, that is
    /// to be known at once. Without a path nothing is written.
    pub fn begin(path: Option<PathBuf>) -> anyhow::Result<Self> {
        let Some(path) = path else { return Ok(Self { place: None }) };
        let mut beside = path.clone().into_os_string();
        beside.push(".part");
        let beside = PathBuf::from(beside);
        let file = File::create(&beside)
            .with_context(|| format!("writing the report to {}", path.display()))?;
        Ok(Self { place: Some((path, beside, file)) })
    }

    /// Writes the report, and says where it is.
    pub fn finish(mut self, report: &Report) -> anyhow::Result<()> {
        let Some((path, beside, file)) = &mut self.place else { return Ok(()) };
        let html = report.to_html();
        let written = file.write_all(html.as_bytes()).and_then(|()| file.sync_all());
        let written = written.and_then(|()| fs::rename(beside, &*path));
        written.with_context(|| format!("writing the report to {}", path.display()))?;
        eprintln!("doorbell: the report is {}", path.display());
        self.place = None;
        Ok(())
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        if let Some((_, beside, _)) = &self.place {
            // What was begun is of no use to anybody.
            let _ = fs::remove_file(beside);
        }
    }
}

/// Writes each figure as an SVG file into a directory, which is made if there is none.
pub fn write_figures(directory: &Path, report: &Report) -> anyhow::Result<()> {
    let shown = directory.display();
    fs::create_dir_all(directory).with_context(|| format!("making the directory {shown}"))?;
    for (name, svg) in report.svgs() {
        let path = directory.join(&name);
        fs::write(path, svg).with_context(|| format!("writing {name} to {shown}"))?;
    }
    Ok(())
}
