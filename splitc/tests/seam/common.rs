//! Running worlds in tests, none of which may hang.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use doorbell_kit::{PATIENCE, effort};
use doorbell_splitc::{BoxError, Carrier, Config, Job, RunError, World};

/// The carriers that reach the processes of a device.
#[allow(dead_code, reason = "not every test tries all")]
pub fn carriers(device: &str) -> &'static [Carrier] {
    let all = &[Carrier::Mapped, Carrier::OneSided, Carrier::Messages, Carrier::Mixed];
    if device == "shm" { all } else { &all[1..] }
}

/// The key of worlds whose processes are told their addresses, which may be of other hosts.
pub const KEY: u64 = 0x5EED_0F7E_5700_0001;

/// A configuration for tests: small heaps, and deaths that are noticed soon.
pub fn config() -> Config {
    Config { heap: 4 << 20, patience: Duration::from_secs(1), key: KEY, ..Config::default() }
}

/// The configuration of a test with a carrier.
#[allow(dead_code, reason = "not every test chooses a carrier")]
pub fn by(carrier: Carrier) -> Config {
    Config { carrier: Some(carrier), ..config() }
}

/// Runs something in a thread of its own, and fails if that takes for ever.
#[track_caller]
pub fn in_time<R: Send + 'static>(does: impl FnOnce() -> R + Send + 'static) -> R {
    let (done, ended) = channel();
    let thread = std::thread::spawn(move || {
        let result = does();
        // Whoever waits may have given up.
        let _ = done.send(());
        result
    });
    if let Err(RecvTimeoutError::Timeout) = ended.recv_timeout(PATIENCE * effort(2, 40)) {
        panic!("it hangs");
    }
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Runs a program in so many threads on a device, and returns what process 0 returned, or the
/// error.
#[allow(dead_code, reason = "not every test looks at the error")]
#[track_caller]
pub fn outcome<T, F>(size: usize, device: &str, config: Config, program: F) -> Result<T, RunError>
where
    T: Send + 'static,
    F: AsyncFn(World) -> Result<T, BoxError> + Send + Sync + 'static,
{
    let device = match device {
        "udp" => "udp:127.0.0.1:0".to_owned(),
        other => other.to_owned(),
    };
    in_time(move || Job::threads(size).device(device).config(config).run(program))
}

/// Runs a program in so many threads on a device, which must not fail.
#[track_caller]
pub fn run<T, F>(size: usize, device: &str, config: Config, program: F) -> T
where
    T: Send + 'static,
    F: AsyncFn(World) -> Result<T, BoxError> + Send + Sync + 'static,
{
    let carrier = config.carrier;
    match outcome(size, device, config, program) {
        Ok(value) => value,
        Err(why) => panic!("{size} processes, {device}, {carrier:?}: {why}"),
    }
}
