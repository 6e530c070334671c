//! The launchers of clusters that have no PMI-1, or a server of their own: Open MPI's `mpiexec`,
//! and Slurm's `srun`.

use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use doorbell_kit::judges::{Judge, Scratch};
use doorbell_kit::lab::passed_over;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::program::program;
use super::{finished, lines};

const OPEN_MPI: Judge = Judge {
    name: "Open MPI's mpiexec",
    install: "apt-get install openmpi-bin",
    probe: &["mpiexec.openmpi", "--version"],
};

/// The lines that the processes of a job print.
fn sums(size: usize) -> Vec<String> {
    let sum: usize = (0..size).sum();
    (0..size).map(|rank| format!("process {rank} of {size}: sum {sum}")).collect()
}

#[test]
fn open_mpi_starts_the_same_program() {
    if !OPEN_MPI.is_here() {
        return;
    }
    let mut command = Command::new("mpiexec.openmpi");
    command.args(["--allow-run-as-root", "--oversubscribe", "-n", "3"]);
    let (output, said) =
        finished(command.env("DOORBELL_SECRET", "a secret that was drawn").args(program("sum")));
    assert!(output.status.success(), "{said}");
    assert_eq!(lines(&said), sums(3), "{said}");
}

#[test]
fn two_jobs_of_open_mpi_on_one_machine_stay_apart() {
    if !OPEN_MPI.is_here() {
        return;
    }
    let started: Vec<_> = (0..2)
        .map(|_| {
            let mut command = Command::new("mpiexec.openmpi");
            command.args(["--allow-run-as-root", "--oversubscribe", "-n", "2"]);
            command.args(program("sum")).stdout(Stdio::piped()).stderr(Stdio::piped());
            command.spawn().expect("it runs")
        })
        .collect();
    for child in started {
        let output = child.wait_with_output().expect("it ends");
        let said = String::from_utf8([output.stdout, output.stderr].concat()).expect("text");
        assert!(output.status.success(), "{said}");
        let own: Vec<_> = lines(&said).into_iter().filter(|line| line.contains("sum")).collect();
        assert_eq!(own, sums(2), "{said}");
    }
}

/// The daemons of a Slurm of one node, which end with this.
struct Slurm {
    daemons: Vec<Child>,
    files: Scratch,
}

impl Slurm {
    /// Starts a Slurm, unless its packages are not installed.
    fn start() -> Option<Self> {
        let there = ["/usr/sbin/munged", "/usr/sbin/slurmctld", "/usr/sbin/slurmd"];
        if let Some(missing) = there.into_iter().find(|path| !Path::new(path).exists()) {
            passed_over(&format!("{missing} is missing: `apt-get install slurm-wlm munge`"));
            return None;
        }
        let mut slurm = Self { daemons: Vec::new(), files: Scratch::new() };
        let folder = slurm.files.path().to_owned();
        let at = |name: &str| folder.join(name).display().to_string();
        for name in ["state", "spool"] {
            fs::create_dir(folder.join(name)).expect("the folder is new");
        }
        fs::write(folder.join("key"), [7; 1024]).expect("there is room");
        use std::os::unix::fs::PermissionsExt;
        let own = fs::Permissions::from_mode(0o600);
        fs::set_permissions(folder.join("key"), own).expect("it is ours");
        fs::write(folder.join("slurm.conf"), configuration(&at)).expect("there is room");
        let host = nix::unistd::gethostname().expect("a name").to_string_lossy().into_owned();
        slurm.daemon(Command::new("/usr/sbin/munged").args([
            "--foreground".to_owned(),
            "--force".to_owned(),
            format!("--key-file={}", at("key")),
            format!("--socket={}", at("munge")),
            format!("--pid-file={}", at("munge.pid")),
            format!("--log-file={}", at("munge.log")),
            format!("--seed-file={}", at("munge.seed")),
        ]));
        slurm.daemon(Command::new("/usr/sbin/slurmctld").arg("-D"));
        slurm.daemon(Command::new("/usr/sbin/slurmd").args(["-D", "-N", short(&host)]));
        slurm.wait_until_idle();
        Some(slurm)
    }

    fn daemon(&mut self, command: &mut Command) {
        command.env("SLURM_CONF", self.files.path().join("slurm.conf"));
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        self.daemons.push(child.expect("it is installed"));
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env("SLURM_CONF", self.files.path().join("slurm.conf"));
        command
    }

    /// Waits until the node takes jobs.
    fn wait_until_idle(&self) {
        let until = Instant::now() + doorbell_kit::PATIENCE;
        loop {
            let (_, said) = finished(self.command("sinfo").args(["-h", "-o", "%t"]));
            if said.trim() == "idle" {
                return;
            }
            let log = fs::read_to_string(self.files.path().join("ctld.log")).unwrap_or_default();
            assert!(Instant::now() < until, "the node is not idle: {said}\n{log}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Slurm {
    fn drop(&mut self) {
        for daemon in self.daemons.iter_mut().rev() {
            let _ = kill(Pid::from_raw(daemon.id() as i32), Signal::SIGTERM);
            let _ = daemon.wait();
        }
    }
}

/// The part of a host's name before its domain, by which Slurm knows nodes.
fn short(host: &str) -> &str {
    host.split('.').next().unwrap_or(host)
}

/// The configuration of a Slurm of one node, this machine, at ports that are free.
fn configuration(at: &impl Fn(&str) -> String) -> String {
    let host = nix::unistd::gethostname().expect("a name").to_string_lossy().into_owned();
    let host = short(&host);
    let free: Vec<_> =
        (0..2).map(|_| TcpListener::bind("127.0.0.1:0").expect("a port is free")).collect();
    let ports: Vec<_> =
        free.iter().map(|free| free.local_addr().expect("an address").port()).collect();
    let [state, spool, socket] = ["state", "spool", "munge"].map(at);
    let [ctld_pid, slurmd_pid, ctld_log, slurmd_log] =
        ["ctld.pid", "slurmd.pid", "ctld.log", "slurmd.log"].map(at);
    let (control, node) = (ports[0], ports[1]);
    format!(
        "ClusterName=test\nSlurmctldHost={host}(127.0.0.1)\nSlurmctldPort={control}\n\
         SlurmdPort={node}\nMpiDefault=none\nProctrackType=proctrack/linuxproc\n\
         TaskPlugin=task/none\nSlurmUser=root\nSlurmdUser=root\nStateSaveLocation={state}\n\
         SlurmdSpoolDir={spool}\nSlurmctldPidFile={ctld_pid}\nSlurmdPidFile={slurmd_pid}\n\
         SlurmctldLogFile={ctld_log}\nSlurmdLogFile={slurmd_log}\nAuthType=auth/munge\n\
         AuthInfo=socket={socket}\nSelectType=select/cons_tres\nReturnToService=2\n\
         NodeName={host} NodeAddr=127.0.0.1 CPUs=2 State=UNKNOWN\n\
         PartitionName=p Nodes=ALL Default=YES OverSubscribe=YES MaxTime=INFINITE State=UP\n"
    )
}

#[test]
fn slurm_starts_the_same_program_with_pmi_and_without() {
    let Some(slurm) = Slurm::start() else { return };
    for mpi in ["pmi2", "none"] {
        let mut command = slurm.command("srun");
        command.args(["-n", "3", "--overcommit", &format!("--mpi={mpi}")]);
        let (output, said) = finished(
            command.env("DOORBELL_SECRET", "a secret that was drawn").args(program("sum")),
        );
        assert!(output.status.success(), "{mpi}: {said}");
        assert_eq!(lines(&said), sums(3), "{mpi}: {said}");
    }
}
