//! Reports in a browser: Chromium, where it is installed.

#[path = "../../examples/sample/data.rs"]
mod data;
mod hard;

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use doorbell_report::{Block, Report};

const PROBE: &str = include_str!("probe.js");

/// A page with a frame for the report: the window of a browser may be no narrower than 500.
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

/// What a page looked like to a browser.
struct Seen {
    /// The lines that the probe wrote.
    findings: Vec<String>,
    /// The messages that the browser wrote to its console.
    console: Vec<String>,
    /// The CSV that the page offers to save.
    csv: String,
}

impl Seen {
    /// The rest of the first finding that begins with a word.
    fn get(&self, word: &str) -> &str {
        self.all(word).first().copied().unwrap_or_else(|| panic!("no {word}: {:?}", self.findings))
    }

    /// The rest of each finding that begins with a word.
    fn all(&self, word: &str) -> Vec<&str> {
        let rest = |line: &'_ String| -> Option<usize> {
            line.strip_prefix(word)?.starts_with(' ').then_some(word.len() + 1)
        };
        self.findings.iter().filter_map(|line| Some(&line[rest(line)?..])).collect()
    }
}

/// A browser, and a folder in which it may write.
struct Browser {
    program: &'static str,
    folder: PathBuf,
}

impl Browser {
    /// The browser of this machine. `None`, with a word on standard error, where none is installed;
    /// under continuous integration, where nobody would read that, an error.
    fn new(test: &str) -> Option<Self> {
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
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(test);
        // What an earlier run has left would be read as this run's.
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).expect("the folder for temporary files can be written to");
        Some(Self { program, folder })
    }

    /// Opens a page, with the probe in it, in a frame of a width.
    fn open(&self, page: &str, width: u32, dark: bool) -> Seen {
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
        Seen {
            findings: element("probe").lines().map(str::to_owned).collect(),
            console: console.map(str::to_owned).collect(),
            csv: element("csv"),
        }
    }
}

impl Browser {
    /// Runs a command, whose output becomes the file "page", and returns what the command wrote to
    /// standard error. A command that runs for a minute waits for somebody, and is ended.
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

/// The text of an element whose content is text alone.
fn unescaped(text: &str) -> String {
    text.replace("&lt;", "<").replace("&gt;", ">").replace("&nbsp;", "\u{a0}").replace("&amp;", "&")
}

/// Asserts that a report is whole in windows of several widths, light and dark.
fn assert_whole(browser: &Browser, report: &Report) {
    let page = report.to_html();
    let blocks = || report.sections.iter().flat_map(|section| &section.blocks);
    let figures = blocks().filter_map(|block| match block {
        Block::Figure(figure) => Some(format!("{} 1", figure.id)),
        _ => None,
    });
    let figures: Vec<String> = figures.collect();
    let tables = blocks().filter(|block| matches!(block, Block::Table(_))).count();
    for (width, dark) in [(360, false), (390, true), (700, false), (1400, false), (1600, true)] {
        let seen = browser.open(&page, width, dark);
        let view = format!("in a window of {width}, dark: {dark}");
        assert_eq!(seen.console, [""; 0], "{view}");
        assert_eq!(seen.get("inner-width"), width.to_string(), "{view}");
        let scroll: u32 = seen.get("scroll-width").parse().expect("a number");
        assert!(scroll <= width, "the page is {scroll} wide {view}");
        for fault in ["elsewhere", "requested", "cut", "small", "overlap"] {
            assert_eq!(seen.all(fault), [""; 0], "{fault} {view}");
        }
        assert_eq!(seen.all("figure"), figures, "each figure is drawn once {view}");
        assert_eq!(seen.all("table").len(), tables, "{view}");
        let (light, darker) = ("rgb(255, 255, 255)", "rgb(20, 23, 26)");
        let (first, then) = if dark { (darker, light) } else { (light, darker) };
        assert_eq!(seen.get("background"), first, "{view}");
        assert_eq!(seen.get("background-then"), then, "after the button is pressed {view}");
    }
}

#[test]
fn a_report_is_whole_in_windows_of_any_width_in_both_themes() {
    let Some(browser) = Browser::new("sample") else { return };
    assert_whole(&browser, &data::report());
}

#[test]
fn a_report_that_is_hard_to_draw_is_whole_in_windows_of_any_width_in_both_themes() {
    let Some(browser) = Browser::new("hard") else { return };
    assert_whole(&browser, &hard::report());
}

#[test]
fn a_browser_reads_the_json_and_the_csv_of_a_report_as_they_were_given() {
    let Some(browser) = Browser::new("embedded") else { return };
    let report = data::report();
    let seen = browser.open(&report.to_html(), 1000, false);
    let json = report.json.clone().expect("the sample has raw results");
    assert!(json.contains("</script>"), "the sample tries to end the script");
    assert_eq!(seen.get("json"), json);
    assert_eq!(seen.all("save"), ["report.csv", "report.json"]);
    assert_eq!(seen.csv, report.to_csv());
}

#[test]
fn the_probe_finds_what_is_wrong_with_a_page() {
    let Some(browser) = Browser::new("faults") else { return };
    let faults = "<figure class=\"drawing\" id=\"bad\"><svg viewBox=\"0 0 400 100\" width=\"300\">\
                  <text x=\"10\" y=\"50\">one</text><text x=\"12\" y=\"50\">other</text>\
                  <text x=\"390\" y=\"20\">beyond</text>\
                  <text x=\"10\" y=\"80\" font-size=\"5\">tiny</text></svg></figure>\
                  <img src=\"https://example.org/x.png\"><div style=\"width:2000px\">.</div>\
                  <script>console.warn('a warning')</script></main>";
    let page = data::report().to_html().replace("</main>", faults);
    let seen = browser.open(&page, 800, false);
    let said = |word: &str| seen.console.iter().any(|line| line.contains(word));
    assert!(said("a warning") && said("Content Security Policy"), "{:?}", seen.console);
    assert_eq!(seen.all("elsewhere"), ["https://example.org/x.png"]);
    assert_eq!(seen.all("overlap"), ["bad: one | other"]);
    assert_eq!(seen.all("cut"), ["bad: beyond"]);
    assert_eq!(seen.all("small"), ["bad: tiny"]);
    assert!(seen.get("scroll-width").parse::<u32>().expect("a number") >= 2000);
}
