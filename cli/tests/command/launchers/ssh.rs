//! Processes that `doorbell run` starts over ssh: this machine's, by a server of its own on the
//! loopback.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use doorbell_kit::judges::{Judge, Scratch};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::program::{Started, gone, program};
use super::{doorbell_run, finished, lines};

const SSH: Judge = Judge {
    name: "sshd",
    install: "apt-get install openssh-server openssh-client",
    probe: &["sh", "-c", "test -x /usr/sbin/sshd && ssh -V"],
};

/// The `sed` script that prints the processors which a process may use, from its status file.
const LIST: &str = "s/^Cpus_allowed_list:[[:space:]]*//p";

/// A server of ssh, and the command that runs others by it.
struct Server {
    child: Child,
    ssh: String,
    _files: Scratch,
}

impl Server {
    /// Starts one, whose only key is new.
    fn start() -> Self {
        let files = Scratch::new();
        let folder = files.path();
        for key in ["host", "user"] {
            let path = folder.join(key);
            let mut keygen = Command::new("ssh-keygen");
            keygen.args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(&path);
            assert!(keygen.status().expect("it comes with ssh").success());
        }
        fs::copy(folder.join("user.pub"), folder.join("authorized")).expect("both are there");
        // sshd wants it, and makes it only where it is started by the system.
        fs::create_dir_all("/run/sshd").expect("tests are run by root");
        let port = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr());
        let port = port.expect("a port is free").port();
        let option = |name: &str, file: &str| format!("{name}={}", folder.join(file).display());
        let child = Command::new("/usr/sbin/sshd")
            .args(["-D", "-e", "-f", "/dev/null", "-p", &port.to_string()])
            .args(["-o", "ListenAddress=127.0.0.1", "-o", "UsePAM=no", "-o", "StrictModes=no"])
            .args(["-o", "PermitRootLogin=yes", "-o", "PidFile=none"])
            .args(["-o", &option("HostKey", "host")])
            .args(["-o", &option("AuthorizedKeysFile", "authorized")])
            .stderr(Stdio::null())
            .spawn()
            .expect("it is installed");
        let ssh = format!(
            "ssh -F none -p {port} -i {} -o BatchMode=yes -o StrictHostKeyChecking=no -o \
             UserKnownHostsFile=/dev/null -o LogLevel=ERROR",
            folder.join("user").display()
        );
        let server = Self { child, ssh, _files: files };
        server.wait_until_it_listens(port);
        server
    }

    fn wait_until_it_listens(&self, port: u16) {
        let until = Instant::now() + doorbell_kit::PATIENCE;
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(Instant::now() < until, "sshd does not listen");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it ends");
    }
}

#[test]
fn processes_on_other_hosts_are_started_by_ssh() {
    if !SSH.is_here() {
        return;
    }
    let server = Server::start();
    for hosts in ["127.0.0.1", "localhost:1,127.0.0.1:2", "127.0.0.1:2,localhost:1"] {
        let options = ["-n", "3", "--hosts", hosts, "--ssh", &server.ssh];
        let (output, said) = finished(doorbell_run(&options).args(program("sum")));
        assert!(output.status.success(), "{hosts}: {said}");
        assert_eq!(lines(&said).len(), 3, "{hosts}: {said}");
        assert!(lines(&said).iter().all(|line| line.ends_with("of 3: sum 3")), "{hosts}: {said}");
    }
}

#[test]
fn standard_input_goes_to_process_0_on_another_host_and_the_secret_is_no_part_of_it() {
    if !SSH.is_here() {
        return;
    }
    let server = Server::start();
    let script = r#"cat; test -n "$DOORBELL_SECRET" && echo "end of $DOORBELL_RANK it's""#;
    let options = ["-n", "2", "--hosts", "127.0.0.1", "--ssh", &server.ssh, "sh", "-c", script];
    let mut command = doorbell_run(&options);
    let input = Scratch::new();
    let path = input.path().join("input");
    fs::write(&path, "a line\n").expect("there is room");
    command.stdin(fs::File::open(Path::new(&path)).expect("it is there"));
    let (output, said) = finished(&mut command);
    assert!(output.status.success(), "{said}");
    let mut all: Vec<_> = said.lines().collect();
    all.sort_unstable();
    assert_eq!(all, ["a line", "end of 0 it's", "end of 1 it's"]);
}

/// In an earlier version, process 0 ran on when the launcher was killed, because nothing ended its
/// ssh. A process that did not end by SIGTERM stayed, as did what a shell had started.
#[test]
fn nothing_is_left_on_other_hosts_when_the_launcher_is_killed() {
    if !SSH.is_here() {
        return;
    }
    let server = Server::start();
    for script in ["\"$@\"; true", "trap '' TERM; echo pid $$; while :; do sleep 1000; done"] {
        let mut command = doorbell_run(&["-n", "2", "--hosts", "127.0.0.1", "--ssh", &server.ssh]);
        command.args(["sh", "-c", script, "sh"]).args(program("waits")).stdin(Stdio::piped());
        let mut started = Started::start(&mut command);
        let pids = started.pids(2);
        assert_eq!(pids.len(), 2);
        kill(Pid::from_raw(started.id()), Signal::SIGKILL).expect("it runs");
        // Nothing is closed before they are gone that might end them as well.
        pids.into_iter().for_each(gone);
        started.wait();
    }
}

#[test]
fn a_failure_on_another_host_ends_the_job_with_its_status_and_all_that_was_started_there() {
    if !SSH.is_here() {
        return;
    }
    let server = Server::start();
    let mut command = doorbell_run(&["-n", "1", "--hosts", "127.0.0.1", "--ssh", &server.ssh]);
    command.args(["sh", "-c", "sleep 1000 & echo pid $!; exit 3", ":"]);
    command.args(["sh", "-c", "sleep 1000; true"]);
    let mut started = Started::start(&mut command);
    let pids = started.pids(1);
    assert_eq!(started.wait().code(), Some(3));
    pids.into_iter().for_each(gone);
}

#[test]
fn processes_on_other_hosts_have_the_launchers_variables_and_a_processor_each() {
    if !SSH.is_here() {
        return;
    }
    let server = Server::start();
    let mut count = Command::new("sed");
    let (_, allowed) = finished(count.args(["-n", LIST, "/proc/self/status"]));
    let processors = std::thread::available_parallelism().expect("the system tells").get();
    for (options, size) in [(&[][..], 1), (&["--no-pin"], 1), (&[], processors + 1)] {
        let size_text = size.to_string();
        let all = ["-n", &size_text, "--hosts", "127.0.0.1", "--ssh", &server.ssh];
        let script =
            format!("echo $DOORBELL_STALL $DOORBELL_SPIN; sed -n '{LIST}' /proc/$$/status");
        let mut command = doorbell_run(&[&all[..], options, &["sh", "-c", &script]].concat());
        command.env("DOORBELL_STALL", "7").env_remove("DOORBELL_SPIN");
        let (_, said) = finished(&mut command);
        let lines: Vec<_> = said.lines().collect();
        assert_eq!(lines.len(), 2 * size, "{said}");
        let spin = if size > processors { "7 0" } else { "7" };
        assert_eq!(lines.iter().filter(|line| **line == spin).count(), size, "{said}");
        let is_bound = options.is_empty() && size == 1;
        let expected = |line: &&&str| match is_bound {
            true => line.parse().is_ok_and(|at: usize| allowed.contains(&at.to_string())),
            false => **line == allowed.trim(),
        };
        assert_eq!(lines.iter().filter(expected).count(), size, "{said}");
    }
}

/// In an earlier version, SIGUSR1 ended ssh, and with that the job.
#[test]
fn ssh_gets_no_signal_that_is_meant_for_programs() {
    if !SSH.is_here() {
        return;
    }
    let server = Server::start();
    let mut command =
        doorbell_run(&["--hosts", "127.0.0.1:1,localhost:1", "--ssh", &server.ssh, "sh", "-c"]);
    let script = "trap 'echo pid 1; exit 0' USR1; echo pid 0; \
                  test $DOORBELL_RANK = 0 && read -r line && exit 0; \
                  while :; do sleep 1000 & wait $!; done";
    let mut started = Started::start(command.arg(script).stdin(Stdio::piped()));
    assert_eq!(started.pids(2), [0, 0]);
    kill(Pid::from_raw(started.id()), Signal::SIGUSR1).expect("it runs");
    assert_eq!(started.pids(1), [1]);
    started.tell("go on\n");
    assert!(started.wait().success());
}
