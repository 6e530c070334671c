//! Starting a process on another host by ssh.

use std::io::{self, Write};
use std::process::{Child, Command};

use anyhow::{Context, ensure};

use super::Args;
use super::plan::Process;

/// The command that starts a process on another host. The script that runs there takes the secret
/// from its standard input, for the arguments of a command are seen by all users of a host.
pub fn there(
    host: &str,
    process: &Process,
    args: &Args,
    variables: &[(&'static str, String)],
) -> anyhow::Result<Command> {
    let mut words = args.ssh.split_whitespace();
    let program = words.next().context("`--ssh` names no command")?;
    ensure!(!process.command.is_empty(), "no program is named");
    let here = std::env::current_dir().context("finding the working directory")?;
    let here = quoted(&here.to_string_lossy());
    let set: Vec<_> =
        variables.iter().map(|(name, value)| format!("{name}={}", quoted(value))).collect();
    let set = set.join(" ");
    let run: Vec<_> = process.command.iter().map(|word| quoted(word)).collect();
    let run = run.join(" ");
    let is_first = variables.iter().any(|(name, value)| *name == "DOORBELL_RANK" && value == "0");
    let begin = format!(
        "IFS= read -r DOORBELL_SECRET && export DOORBELL_SECRET && cd {here} || exit 127; "
    );
    let script = if is_first {
        // Process 0 has the rest of the input, whose end says nothing of the launcher's. When that
        // has gone, so has the server of ssh that has started the shell.
        format!(
            "{begin}exec 3<&0; env {set} {run} <&3 3<&- & p=$!; \
             {{ while kill -0 $PPID; do sleep 1; done; kill -TERM $p; }} >/dev/null 2>&1 & w=$!; \
             wait $p; s=$?; kill $w 2>/dev/null; exit $s"
        )
    } else {
        // The input of the others ends with the launcher, and they with that.
        format!(
            "{begin}exec 3<&0; env {set} {run} </dev/null 3<&- & p=$!; \
             {{ cat <&3 >/dev/null; kill -TERM $p; }} 2>/dev/null & w=$!; \
             wait $p; s=$?; kill $w 2>/dev/null; exit $s"
        )
    };
    let mut command = Command::new(program);
    command.args(words).arg(host).arg(format!("sh -c {}", quoted(&script)));
    Ok(command)
}

/// Gives a process on another host the secret, and process 0 the launcher's input behind that. The
/// input of the others stays open for as long as the launcher lives.
pub fn give(child: &mut Child, secret: &str, is_first: bool) {
    let Some(stdin) = &mut child.stdin else { return };
    // A process that has ended is noticed elsewhere.
    let _ = writeln!(stdin, "{secret}").and_then(|()| stdin.flush());
    if is_first && let Some(mut stdin) = child.stdin.take() {
        // The thread ends with the input, or with this program.
        std::thread::spawn(move || io::copy(&mut io::stdin(), &mut stdin));
    }
}

/// A word as a shell takes it for one.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quoted_word_is_one_word_to_a_shell() {
        for word in ["", "a b", "it's", "$HOME `x` \"y\" \\", "*;&|<>\n#"] {
            let script = format!("printf %s {}", quoted(word));
            let output = Command::new("sh").args(["-c", &script]).output();
            let output = output.expect("there is a shell");
            assert_eq!(output.stdout, word.as_bytes(), "{word}");
        }
    }
}
