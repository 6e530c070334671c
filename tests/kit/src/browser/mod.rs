//! Reports as a browser shows them: Chromium, where it is installed, opens a page, and a probe in
//! the page reports what is visible.

use std::fs::{self, File};
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const PROBE: &str = include_str!("probe.js");

/// A page with a frame for the report, since a browser's window can't be narrower than 500.
const AROUND: &str = r#"<!DOCTYPE html><meta charset="utf-8">
<meta name="color-scheme" content="light dark">
<iframe src="report.html" style="width:WIDTHpx;height:900px;border:0"></iframe>
<script>
addEventListener("message", ({ data }) => {
  for (const [id, text] of Object.entries(data)) {
    const element = document.createElement("pre");
    element.id = id;
    element.textContent = text;
    document.body.append(element);
  }
});
</script>"#;

/// The findings of the probe in a page that a browser has opened.
pub struct RenderedPage {
    /// The lines that the probe has written: a word for the kind of finding, and the finding.
    pub findings: Vec<String>,
    /// The messages that the browser wrote to its console.
    pub console: Vec<String>,
    /// The CSV that the page offers to save.
    pub csv: String,
}

impl RenderedPage {
    /// The text behind a word in the first finding that begins with the word.
    ///
    /// # Panics
    /// If no finding begins with the word.
    #[must_use]
    pub fn get(&self, word: &str) -> &str {
        self.all(word).first().copied().unwrap_or_else(|| panic!("no {word}: {:?}", self.findings))
    }

    /// The text behind a word in each finding that begins with the word.
    #[must_use]
    pub fn all(&self, word: &str) -> Vec<&str> {
        let rest = |line: &'_ String| -> Option<usize> {
            line.strip_prefix(word)?.starts_with(' ').then_some(word.len() + 1)
        };
        self.findings.iter().filter_map(|line| Some(&line[rest(line)?..])).collect()
    }
}

/// A browser with a folder in which it may write.
pub struct Browser {
    program: &'static str,
    folder: PathBuf,
}

/// A report as a page, with what must be visible on the page.
pub struct Page<'a> {
    /// The text of the page.
    pub html: &'a str,
    /// The names of all figures, in order.
    pub figures: &'a [&'a str],
    /// The number of tables on the page.
    pub tables: usize,
    /// The width of a window from which on each table shows all its columns at once; in narrower
    /// windows a table may scroll in its frame.
    pub roomy: u32,
}

impl Browser {
    /// The browser of this machine, which writes to a folder that no other test uses. `None`, with
    /// a line on standard error, if no browser is installed.
    ///
    /// # Panics
    /// Under continuous integration, if no browser is installed; if the folder can't be written to.
    pub fn new(folder: impl Into<PathBuf>) -> Option<Self> {
        let folder = folder.into();
        let runs = |program: &&&str| {
            Command::new(program).arg("--version").output().is_ok_and(|done| done.status.success())
        };
        let Some(program) = ["chromium", "chromium-browser", "google-chrome"].iter().find(runs)
        else {
            let missing = "Chromium is missing: install it with `apt-get install chromium`";
            let integration = std::env::var_os("CI").is_some_and(|value| !value.is_empty());
            assert!(!integration, "{missing}");
            // The harness would keep `eprintln!` to itself.
            writeln!(std::io::stderr(), "SKIPPED, no page judged: {missing}").expect("it is open");
            return None;
        };
        // Files of an earlier run would be read as those of this run.
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).expect("the folder for temporary files can be written to");
        Some(Self { program, folder })
    }

    /// Opens a page, with the probe in it, in a frame of a width, on a light or a dark desktop.
    ///
    /// # Panics
    /// If the browser or the probe fails.
    #[must_use]
    pub fn open(&self, page: &str, width: u32, dark: bool) -> RenderedPage {
        let file = self.folder.join("around.html");
        let around = AROUND.replace("WIDTH", &width.to_string());
        fs::write(&file, around).expect("the page around the report can be written");
        let probe = format!("<script>{PROBE}</script></body>");
        assert!(page.contains("</body>"), "the probe has a place");
        let page = page.replace("</body>", &probe);
        fs::write(self.folder.join("report.html"), page).expect("the report can be written");
        let errors = self.run(
            Command::new(self.program)
                .args(["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"])
                .args(["--disable-background-networking", "--disable-component-update"])
                .args(["--no-first-run", "--disable-breakpad", "--disable-crash-reporter"])
                .arg("--host-resolver-rules=MAP * ~NOTFOUND")
                .args(["--enable-logging=stderr", "--virtual-time-budget=5000", "--dump-dom"])
                .arg(format!("--user-data-dir={}", self.folder.join("profile").display()))
                .arg(format!("--window-size={},1000", width + 100))
                .arg(format!("--blink-settings=preferredColorScheme={}", u8::from(!dark)))
                .arg(format!("file://{}", file.display())),
        );
        let page = fs::read_to_string(self.folder.join("page")).expect("a page is text");
        let element = |id: &str| {
            let text = between(&page, &format!("<pre id=\"{id}\">"), "</pre>").map(unescaped);
            text.unwrap_or_else(|| panic!("the probe did not finish:\n{errors}"))
        };
        let console = errors.lines().filter(|line| line.contains("CONSOLE"));
        RenderedPage {
            findings: element("probe").lines().map(str::to_owned).collect(),
            console: console.map(str::to_owned).collect(),
            csv: element("csv"),
        }
    }

    /// Asserts that a report is shown completely in windows of some widths, each light or dark: the
    /// report loads nothing from elsewhere, draws each figure once, and neither cuts nor covers any
    /// text; a table that is wider than its frame scrolls there, and a hint says so.
    ///
    /// # Panics
    /// If the report is not shown completely.
    pub fn assert_whole(&self, page: &Page<'_>, windows: &[(u32, bool)]) {
        let drawn: Vec<String> = page.figures.iter().map(|figure| format!("{figure} 1")).collect();
        for &(width, dark) in windows {
            let seen = self.open(page.html, width, dark);
            let view = format!("in a window of {width}, dark: {dark}");
            assert_eq!(seen.console, [""; 0], "{view}");
            assert_eq!(seen.get("inner-width"), width.to_string(), "{view}");
            let scroll: u32 = seen.get("scroll-width").parse().expect("a number");
            assert!(scroll <= width, "the page is {scroll} wide {view}");
            for fault in ["elsewhere", "requested", "cut", "small", "overlap", "hint"] {
                assert_eq!(seen.all(fault), [""; 0], "{fault} {view}");
            }
            assert_eq!(seen.all("figure"), drawn, "each figure is drawn once {view}");
            assert_eq!(seen.all("table").len(), page.tables, "{view}");
            if width >= page.roomy {
                assert_eq!(seen.all("scrolls"), [""; 0], "tables that do not fit {view}");
            }
            let (light, darker) = ("rgb(255, 255, 255)", "rgb(20, 23, 26)");
            let (first, then) = if dark { (darker, light) } else { (light, darker) };
            assert_eq!(seen.get("background"), first, "{view}");
            assert_eq!(seen.get("background-then"), then, "after the button is pressed {view}");
        }
    }

    /// Runs a command, whose output becomes the file "page", and returns what the command wrote to
    /// standard error. A command that does not end within a minute is killed.
    fn run(&self, command: &mut Command) -> String {
        let create = |name: &str| File::create(self.folder.join(name)).expect("a file is made");
        let mut child = command
            .stdin(Stdio::null())
            .stdout(create("page"))
            .stderr(create("errors"))
            .spawn()
            .expect("the browser starts");
        let deadline = Instant::now() + Duration::from_secs(60);
        let status = loop {
            match child.try_wait().expect("the browser is a child") {
                Some(status) => break status.to_string(),
                None if Instant::now() > deadline => {
                    child.kill().expect("the browser is a child");
                    child.wait().expect("the browser is a child");
                    break "the browser did not finish in a minute".to_owned();
                }
                None => std::thread::sleep(Duration::from_millis(10)),
            }
        };
        let errors = fs::read(self.folder.join("errors")).expect("the file was made");
        let errors = String::from_utf8_lossy(&errors).into_owned();
        assert_eq!(status, "exit status: 0", "{errors}");
        errors
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let _ = fs::remove_dir_all(&self.folder);
        }
    }
}

fn between<'a>(text: &'a str, from: &str, to: &str) -> Option<&'a str> {
    Some(text.split_once(from)?.1.split_once(to)?.0)
}

/// The text of an element that contains only text, without HTML escapes.
fn unescaped(text: &str) -> String {
    text.replace("&lt;", "<").replace("&gt;", ">").replace("&nbsp;", "\u{a0}").replace("&amp;", "&")
}
