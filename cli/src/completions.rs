//! `doorbell completions`: prints the script by which a shell completes the command's arguments.

use clap::Command;
use clap_complete::Shell;
use doorbell_measure::out;

/// Where each shell looks for the script.
const WHERE: &str = "\
Where the script goes:
  bash        doorbell completions bash > \\
                ~/.local/share/bash-completion/completions/doorbell
  zsh         doorbell completions zsh > ~/.zfunc/_doorbell
                with fpath+=~/.zfunc before compinit in ~/.zshrc
  fish        doorbell completions fish > ~/.config/fish/completions/doorbell.fish
  elvish      doorbell completions elvish >> ~/.config/elvish/rc.elv
  powershell  doorbell completions powershell >> $PROFILE

Folders must be there first (mkdir -p), and a new shell reads the script.";

/// Prints a script by which a shell completes the arguments of this command.
#[derive(clap::Args)]
#[command(after_help = WHERE)]
pub struct Args {
    /// The shell that reads the script
    shell: Shell,
}

/// Prints the script for a command with all its subcommands.
///
/// # Errors
/// When the script can't be printed.
pub fn run(args: &Args, mut command: Command) -> anyhow::Result<()> {
    let name = command.get_name().to_owned();
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, name, &mut script);
    out::print(&String::from_utf8_lossy(&script))
}
