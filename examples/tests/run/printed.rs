//! Commands that are printed for people to type, and what is printed of their output.

/// `cargo run … --example NAME -- ARGUMENTS`, somewhere in a text.
#[derive(Debug)]
pub struct Command {
    pub example: String,
    pub arguments: Vec<String>,
    /// The lines below it, where it stands behind a prompt.
    pub shown: Vec<String>,
}

impl Command {
    /// Whether another runs the same in the same way.
    pub fn runs_as(&self, other: &Self) -> bool {
        self.example == other.example && self.arguments == other.arguments
    }
}

/// All of a text.
pub fn commands(text: &str) -> Vec<Command> {
    let mut found = Vec::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let Some((before, after)) = line.split_once("--example ") else { continue };
        // As far as the comment behind it, or the end of what is set as code.
        let command = after.split('`').next().unwrap_or_default();
        let command = command.split(" #").next().unwrap_or_default();
        let mut words = command.split_whitespace().map(str::to_owned);
        let example = words.next().expect("an example has a name");
        let arguments = words.skip_while(|word| word == "--").collect();
        let mut shown = Vec::new();
        if before.starts_with("$ ") {
            let below = |line: &&str| !line.starts_with("$ ") && !line.starts_with("```");
            while let Some(line) = lines.next_if(below) {
                shown.push(line.to_owned());
            }
        }
        found.push(Command { example, arguments, shown });
    }
    found
}

/// Whether lines are those that are shown, but for what is another each time: how long it took, how
/// fast that was, and names with the process's number in them. `…` stands for any that follow.
pub fn is_as_shown(said: &str, shown: &[String]) -> bool {
    let said: Vec<_> = said.lines().collect();
    let (shown, enough) = match shown {
        [shown @ .., last] if last == "…" => (shown, said.len() > shown.len()),
        shown => (shown, said.len() == shown.len()),
    };
    enough && said.iter().zip(shown).all(|(said, shown)| lasting(said) == lasting(shown))
}

/// What of a line is the same each time.
fn lasting(line: &str) -> Vec<&str> {
    let mut words: Vec<_> = line.split(' ').collect();
    for at in 0..words.len() {
        let unit = words.get(at + 1).map(|next| next.trim_end_matches(','));
        if words[at].parse::<f64>().is_ok()
            && matches!(unit, Some("s" | "ms" | "µs" | "GB/s" | "%"))
        {
            words[at] = "a figure";
        } else if words[at].contains('/') {
            // A device's name begins with what kind of device that is.
            words[at] = words[at].split(|c: char| !c.is_alphabetic()).next().unwrap_or_default();
        }
    }
    words
}

#[test]
fn commands_are_found_wherever_they_are_set() {
    let text = "\
        cargo run --release --example one -- a b   # as it is\n\
        `cargo run --example two -- c` does it\n\
        $ cargo run --release --example three\n\
        so\n\
        …\n\
        $ cargo run --example four\n\
        ```\n\
        another line\n";
    let plain = |command: &Command| {
        format!("{} {:?} {:?}", command.example, command.arguments, command.shown)
    };
    assert_eq!(
        commands(text).iter().map(plain).collect::<Vec<_>>(),
        [r#"one ["a", "b"] []"#, r#"two ["c"] []"#, r#"three [] ["so", "…"]"#, r#"four [] []"#]
    );
}

#[test]
fn what_is_shown_is_compared_but_for_times_and_names() {
    let is = |said: &str, shown: &str| {
        is_as_shown(said, &shown.lines().map(str::to_owned).collect::<Vec<_>>())
    };
    assert!(is("8 items in 0.5 s, 3.1 GB/s", "8 items in 20 s, 2 GB/s"));
    assert!(!is("8 items in 0.5 s", "7 items in 0.5 s") && !is("in 2 s", "in 2 ms"));
    assert!(is("at shm:kv/1/0", "at shm:kv/234/0") && !is("at udp:a/b", "at shm:a/b"));
    assert!(is("one\ntwo", "one\n…") && !is("one", "one\n…") && !is("one\ntwo", "one"));
}
