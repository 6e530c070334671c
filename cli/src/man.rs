//! `doorbell man`: the manual pages of the command, one for each subcommand.

use std::fs;
use std::path::PathBuf;

use anyhow::Context;
use clap::Command;
use clap_mangen::Man;
use doorbell_measure::out;

/// Where `man` finds the pages.
const WHERE: &str = "\
To install the pages, and to read one:
  doorbell man --out ~/.cargo/share/man/man1
  man doorbell-perf

man looks there if ~/.cargo/bin is in PATH. To read a page without that:
  doorbell man --out /tmp/doorbell && man -l /tmp/doorbell/doorbell-perf.1";

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
    // The subcommand `help` has no arguments of its own.
    let mut command = command.disable_help_subcommand(true);
    command.build();
    let mut pages = Vec::new();
    collect(&command, &mut pages)?;
    let Some(folder) = &args.out else {
        let all: String = pages.into_iter().map(|(_, page)| page).collect();
        return out::print(&all);
    };
    let shown = folder.display();
    fs::create_dir_all(folder).with_context(|| format!("making the folder {shown}"))?;
    for (name, page) in pages {
        fs::write(folder.join(&name), page)
            .with_context(|| format!("writing {name} to {shown}"))?;
    }
    Ok(())
}

/// Appends the page of a command, and those of its subcommands, each with its file's name.
fn collect(command: &Command, pages: &mut Vec<(String, String)>) -> anyhow::Result<()> {
    let man = Man::new(command.clone()).manual("Doorbell");
    let mut page = Vec::new();
    man.render(&mut page).context("making a manual page")?;
    pages.push((man.get_filename(), String::from_utf8_lossy(&page).into_owned()));
    let visible = command.get_subcommands().filter(|below| !below.is_hide_set());
    visible.into_iter().try_for_each(|below| collect(below, pages))
}
