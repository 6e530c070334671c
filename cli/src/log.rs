//! The spans and events of Doorbell's crates, on standard error: those that `RUST_LOG` asks for.

use std::env::{self, VarError};
use std::io;

use doorbell_measure::out;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::FmtSpan;

/// The variable that says what is shown, and of which crates.
const VARIABLE: &str = "RUST_LOG";

/// Shows what `RUST_LOG` asks for from now on, and warnings of all crates. Without that variable
/// nobody subscribes, so that a span or an event costs a look at a number that says so.
pub fn start() {
    let asked = match env::var(VARIABLE) {
        Ok(asked) if !asked.trim().is_empty() => asked,
        Ok(_) | Err(VarError::NotPresent) => return,
        Err(why) => return ignored(&why.to_string()),
    };
    match EnvFilter::try_new(format!("warn,{asked}")) {
        Ok(filter) => tracing_subscriber::fmt()
            .with_env_filter(filter)
            .with_span_events(FmtSpan::CLOSE)
            .with_writer(io::stderr)
            .init(),
        Err(why) => ignored(&why.to_string()),
    }
}

fn ignored(why: &str) {
    out::note(format_args!(
        "doorbell: {VARIABLE} is ignored: {why}; it is set as in {VARIABLE}=doorbell_verbs=debug"
    ));
}
