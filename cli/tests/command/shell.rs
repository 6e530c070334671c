//! `doorbell completions` and `doorbell man`, as a user runs them.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use super::{run, said};

/// The commands that `doorbell --help` lists, but for `help`.
fn commands() -> Vec<String> {
    let help = String::from_utf8(run("--help").stdout).expect("text");
    let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let listed = listed.take_while(|line| !line.is_empty());
    // The lines that go on with a description are indented further.
    let names = listed.filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    names.filter(|name| !["", "help"].contains(name)).map(str::to_owned).collect()
}

/// The options and arguments that `doorbell COMMAND --help` lists: `--size` of `--size <N>`.
fn options(command: &str) -> Vec<String> {
    let help = String::from_utf8(run(&format!("{command} --help")).stdout).expect("text");
    let lines = help.lines().map(str::trim_start);
    let words = lines.filter(|line| line.starts_with('-')).flat_map(|line| line.split([' ', ',']));
    words.filter(|word| word.starts_with("--")).map(str::to_owned).collect()
}

#[test]
fn the_script_of_each_shell_completes_every_command() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let output = run(&format!("completions {shell}"));
        assert!(output.status.success(), "{shell}: {}", said(&output));
        let script = String::from_utf8(output.stdout).expect("text");
        for command in commands() {
            assert!(script.contains(&command), "{shell}: {command} is not in:\n{script}");
        }
    }
}

#[test]
fn bash_reads_the_script_and_completes_by_it() {
    let script = run("completions bash").stdout;
    let mut bash = Command::new("bash")
        .args(["--norc", "-s"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("bash is installed");
    // As bash calls the function when a user presses TAB behind `doorbell perf write_l`.
    let calls = "\nCOMP_WORDS=(doorbell perf write_l); COMP_CWORD=2\n\
                 _doorbell doorbell write_l perf && echo \"${COMPREPLY[@]}\"\n";
    let mut stdin = bash.stdin.take().expect("it is piped");
    stdin.write_all(&script).and_then(|()| stdin.write_all(calls.as_bytes())).expect("bash reads");
    drop(stdin);
    let output = bash.wait_with_output().expect("bash ends");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "write_lat\n", "{}", said(&output));
    assert_eq!(said(&output), "");
}

/// The page of a command, with plain hyphens.
fn page(folder: &Path, name: &str) -> String {
    let path = folder.join(format!("{name}.1"));
    let page = fs::read_to_string(&path).unwrap_or_else(|why| panic!("{name}: {why}"));
    page.replace("\\-", "-")
}

#[test]
fn every_command_has_a_manual_page_with_all_its_options() {
    let folder = tempfile::tempdir().expect("a folder");
    let pages = folder.path().join("share/man1");
    let output = run(&format!("man --out {}", pages.display()));
    assert!(output.status.success() && output.stdout.is_empty(), "{}", said(&output));

    let commands = commands();
    assert!(commands.len() >= 8, "{commands:?}");
    let whole = page(&pages, "doorbell");
    for command in &commands {
        let page = page(&pages, &format!("doorbell-{command}"));
        let page = page.split(".SH OPTIONS").nth(1).expect("a section about options");
        assert!(whole.contains(&format!("doorbell-{command}(1)")), "{whole}");
        for option in options(command) {
            assert!(page.contains(&option), "{command}: {option} is not in:\n{page}");
        }
    }
    let files = fs::read_dir(&pages).expect("a folder").count();
    assert_eq!(files, commands.len() + 1, "a page for each command and one for all");
}

#[test]
fn manual_pages_go_to_standard_output_unless_a_folder_is_named() {
    let output = run("man");
    assert!(output.status.success(), "{}", said(&output));
    let pages = String::from_utf8(output.stdout).expect("text");
    assert_eq!(pages.matches(".SH NAME").count(), commands().len() + 1);

    let output = run("man --out /dev/null/folder");
    assert_eq!(output.status.code(), Some(1));
    assert!(said(&output).contains("making the folder /dev/null/folder: "), "{}", said(&output));
}
