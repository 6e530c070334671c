//! The options of `doorbell run`.

use std::net::IpAddr;

/// Start the processes of a job: `doorbell run -n 4 ./prog`
///
/// Each process runs the program with its arguments, and finds the others by Doorbell's job
/// variables, as `splitc::run` does. Several programs in one job stand between colons:
/// `doorbell run -n 2 ./a x : -n 2 ./b`.
///
/// When a process fails, the others are ended, and `doorbell run` ends with that process's status.
/// Signals are passed on to all processes; standard input goes to process 0.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// How many processes run the first program [default: one for each processor, or each host]
    #[arg(short = 'n', value_name = "COUNT")]
    pub count: Option<usize>,
    /// Begin each line of output with the number of its process
    #[arg(long)]
    pub prefix: bool,
    /// Hosts to start processes on by ssh, in blocks of equal size; `HOST:COUNT` for blocks of
    /// another. `localhost` is this machine, without ssh
    #[arg(long, value_name = "HOST,…", value_delimiter = ',')]
    pub hosts: Vec<String>,
    /// The command that runs a command on another host
    #[arg(long, value_name = "COMMAND", default_value = "ssh -o BatchMode=yes")]
    pub ssh: String,
    /// An address of this machine that the hosts reach [default: all that it has]
    #[arg(long, value_name = "IP")]
    pub address: Option<IpAddr>,
    /// The devices that the processes may open, by preference: each pair uses the first that
    /// reaches the one from the other [default: shm,udp]
    #[arg(long, value_name = "DEVICE,…")]
    pub device: Option<String>,
    /// The network interface of devices that are named without one
    #[arg(long, value_name = "INTERFACE")]
    pub interface: Option<String>,
    /// Have each process print by which device it reaches the others, and why not by another
    #[arg(long)]
    pub routes: bool,
    /// After how many seconds a process that waits says for whom [default: 60]
    #[arg(long, value_name = "SECONDS")]
    pub stall: Option<u64>,
    /// Do not bind the processes to processors
    #[arg(long)]
    pub no_pin: bool,
    /// How many seconds all processes together may take to find each other [default: what
    /// DOORBELL_WITHIN says, or 30]
    #[arg(long, value_name = "SECONDS")]
    pub within: Option<u64>,
    /// The program, with its arguments
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
    #[arg(value_name = "PROGRAM")]
    pub program: Vec<String>,
}
