//! Starting a process on another host by ssh.

use std::io::{self, Write};
use std::process::{Child, Command};

use anyhow::{Context, ensure};

use super::args::Args;
use super::exec;
use super::plan::Process;
use super::signals::GRACE;
use super::variables::{Variables, taken_over};

/// The first part of the script that the shell of another host runs. Its arguments are the working
/// directory, the number of the process among those of its host, how many these are, `pin` or
/// something else, and then the arguments of `env`: variables, and the program with its arguments.
const BEGIN: &str = concat!(
    // The arguments of a command are seen by all users of a host, and its input is not.
    r#"IFS= read -r DOORBELL_SECRET && export DOORBELL_SECRET && cd "$1" || exit 127; "#,
    "exec 3<&0; here=$2; all=$3; pin=$4; shift 4; "
);

/// Chooses the processor of a process, and sets `run` to what binds it. If there are more processes
/// than processors, none is bound, and none spins.
const PROCESSOR: &str = concat!(
    r#"list=$(sed -n "s/^Cpus_allowed_list:[[:space:]]*//p" /proc/self/status 2>/dev/null); "#,
    // The list has numbers and ranges with commas between: 0-3,8.
    "each() { IFS=,; for range in $1; do at=${range%-*}; while [ $at -le ${range#*-} ]; ",
    "do echo $at; at=$((at+1)); done; done; }; ",
    r#"count=0; own=; for at in $(each "$list"); do [ $count = $here ] && own=$at; "#,
    "count=$((count+1)); done; run=; ",
    "if [ $count -gt 0 ] && [ $all -gt $count ]; then ",
    "export DOORBELL_SPIN=${DOORBELL_SPIN:-0}; ",
    "elif [ $pin = pin ] && [ -n \"$own\" ] && taskset -c $own true 2>/dev/null; then ",
    "run=\"taskset -c $own\"; fi; ",
);

/// Defines how the process ends by force: with all that it has started, which is a group of its own
/// where the host has `setsid`.
const FORCE: &str = concat!(
    "command -v setsid >/dev/null && run=\"setsid $run\"; ",
    "send() { kill -s $1 -- -$p || kill -s $1 $p; }; ",
    // From here on, the script does not end this any more when the process ends.
    "force() { trap \"\" TERM; send TERM; sleep $grace; send KILL; }; "
);

/// Starts process 0, which has the rest of the input. The end of that says nothing of the launcher;
/// when the launcher has gone, so has the server of ssh that has started the shell.
const FIRST: &str = concat!(
    "$run env \"$@\" <&3 3<&- & p=$!; ",
    "{ exec 3<&-; while kill -0 $PPID; do sleep 1; done; force; } >/dev/null 2>&1 & w=$!; "
);

/// The part of the script that starts a process other than the first. The input ends with the
/// launcher, and the process with the input.
const OTHER: &str = concat!(
    "$run env \"$@\" </dev/null 3<&- & p=$!; ",
    "{ cat <&3; force; } >/dev/null 2>&1 & w=$!; "
);

/// Waits for the process. What the process has started ends with it if it fails. The braces close
/// the output, which a function that is called without them would keep open for ssh to wait for.
const END: &str = concat!(
    "wait $p; s=$?; kill $w 2>/dev/null; ",
    "if [ $s != 0 ] && kill -s 0 -- -$p 2>/dev/null; then ",
    "{ force; } >/dev/null 2>&1 3<&- & fi; exit $s"
);

/// The command that starts a process on another host.
pub fn there(
    host: &str,
    (rank, process): (usize, &Process),
    args: &Args,
    variables: &Variables,
) -> anyhow::Result<Command> {
    let mut words = args.ssh.split_whitespace();
    let program = words.next().context("`--ssh` names no command")?;
    ensure!(!process.command.is_empty(), "no program is named");
    let script = format!(
        "grace={}; {BEGIN}{PROCESSOR}{FORCE}{}{END}",
        GRACE.as_secs(),
        if rank == 0 { FIRST } else { OTHER }
    );
    let here = std::env::current_dir().context("finding the working directory")?;
    let (local, locals) = process.local;
    let pin = if args.no_pin { "-" } else { "pin" };
    let (local, locals) = (local.to_string(), locals.to_string());
    let mut line = format!("exec sh -c {} doorbell", quoted(&script));
    for word in [&here.to_string_lossy(), &*local, &locals, pin] {
        line += &format!(" {}", quoted(word));
    }
    // `env` takes the later of two values, so the job's own variables come last.
    for (name, value) in taken_over().iter().chain(variables) {
        line += &format!(" {}", quoted(&format!("{name}={value}")));
    }
    for word in &process.command {
        line += &format!(" {}", quoted(word));
    }
    let mut command = exec::ending_with_this(None)?;
    command.arg(program).args(words).arg(host).arg(line);
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

/// Quotes a string so that a shell takes it for one word.
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
