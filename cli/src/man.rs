//! `doorbell man`: the manual pages of the command, one for each subcommand.

use std::path::PathBuf;
use std::{fs, io};

use anyhow::Context;
use clap::Command;
use clap_mangen::Man;
use doorbell_measure::out;

/// How the pages are installed.
const WHERE: &str = "\
To install the pages, and to read one:
  doorbell man --out ~/.cargo/share/man/man1
  man doorbell-perf

man looks there if ~/.cargo/bin is in PATH. To read a page from any folder:
  doorbell man --out /tmp/doorbell
  man -l /tmp/doorbell/doorbell-perf.1";

/// Makes the manual pages of this command, one for each subcommand.
///
/// Without --out all pages go to standard output, one after the other.
#[derive(clap::Args)]
#[command(after_help = WHERE)]
pub struct Args {
    /// Write each page as a file into a folder, which is made if it is missing
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// Makes the pages of a command with all its subcommands.
///
/// # Errors
/// When a page can't be printed or written.
pub fn run(args: &Args, command: Command) -> anyhow::Result<()> {
    // The subcommand `help` shows what the pages have.
    let mut command = command.disable_help_subcommand(true);
    command.build();
    let mut pages = Vec::new();
    collect(&command, &mut pages).context("making the manual pages")?;
    let Some(folder) = &args.out else {
        let all: String = pages.into_iter().map(|(_, page)| page).collect();
        return out::print(&all);
    };
    let shown = folder.display();
    fs::create_dir_all(folder).with_context(|| format!("making the folder {shown}"))?;
    for (name, page) in pages {
        let written = fs::write(folder.join(&name), page);
        written.with_context(|| format!("writing {name} to {shown}"))?;
    }
    Ok(())
}

/// Appends the page of a command, and those of its subcommands, each with its file's name.
fn collect(command: &Command, pages: &mut Vec<(String, String)>) -> io::Result<()> {
    let man = Man::new(command.clone())
        .source(concat!("doorbell ", env!("CARGO_PKG_VERSION")))
        .manual("Doorbell");
    pages.push((man.get_filename(), page(&man, command)?));
    command.get_subcommands().try_for_each(|below| collect(below, pages))
}

/// Makes the page of a command, in the language of `man`.
fn page(man: &Man, command: &Command) -> io::Result<String> {
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    if command.has_subcommands() {
        man.render_subcommands_section(&mut page)?;
    }
    let mut page = String::from_utf8_lossy(&page).into_owned();
    if command.get_after_help().or(command.get_after_long_help()).is_some() {
        let mut notes = Vec::new();
        man.render_extra_section(&mut notes)?;
        // What stands below the help is a table or commands, so its lines stay as they are.
        let notes = String::from_utf8_lossy(&notes).replace(".SH EXTRA\n", ".SH NOTES\n.nf\n");
        page += &notes;
        page += ".fi\n";
    }
    Ok(page)
}
