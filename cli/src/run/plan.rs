//! Which process runs what, and where.

use std::collections::HashMap;
use std::net::IpAddr;

use anyhow::{Context, ensure};

use super::args::Args;

/// The processes of a job, by their ranks.
#[derive(Debug)]
pub struct Plan {
    pub processes: Vec<Process>,
}

/// A process that is to be started.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Process {
    /// The program with its arguments.
    pub command: Vec<String>,
    /// The host to start it on; none for this machine.
    pub host: Option<String>,
    /// The number of the process among those of its host, and how many there are.
    pub local: (usize, usize),
}

/// The most processes of a job on one launcher.
const MOST: usize = 4096;

impl Plan {
    /// The plan of a command line.
    pub fn of(args: &Args) -> anyhow::Result<Self> {
        let hosts = hosts(&args.hosts)?;
        let default = match &hosts[..] {
            [] => std::thread::available_parallelism().map_or(1, usize::from),
            hosts => hosts.iter().map(|(_, count)| count.unwrap_or(1)).sum(),
        };
        let mut commands = Vec::new();
        for (at, words) in args.program.split(|word| word == ":").enumerate() {
            let (count, command) = match (at, words) {
                (0, command) => (args.count.unwrap_or(default), command),
                (_, [option, count, command @ ..]) if option == "-n" => {
                    let wrong = || format!("`-n {count}` behind a colon: a number must follow");
                    (count.parse().with_context(wrong)?, command)
                }
                (_, command) => (1, command),
            };
            ensure!(!command.is_empty(), "a program must stand on both sides of a colon");
            ensure!(count >= 1, "`-n 0`: each program has at least one process");
            let all = commands.len().saturating_add(count);
            ensure!(all <= MOST, "{all} processes: `doorbell run` starts {MOST} at the most");
            commands.extend(std::iter::repeat_n(command.to_vec(), count));
        }
        let hosts = spread(commands.len(), &hosts)?;
        let mut locals: HashMap<Option<String>, usize> = HashMap::new();
        let start = |(command, host): (_, Option<String>)| {
            let local = locals.entry(host.clone()).or_default();
            *local += 1;
            Process { command, host, local: (*local - 1, 0) }
        };
        let mut processes: Vec<_> = commands.into_iter().zip(hosts).map(start).collect();
        for process in &mut processes {
            process.local.1 = locals[&process.host];
        }
        Ok(Self { processes })
    }

    /// Whether a process runs on another host.
    pub fn has_remote(&self) -> bool {
        self.processes.iter().any(|process| process.host.is_some())
    }

    /// The places of the launcher's rendezvous, as the processes are told them.
    pub fn places(&self, address: Option<IpAddr>, port: u16) -> anyhow::Result<String> {
        let hosts = match address {
            Some(address) => vec![address],
            None if self.has_remote() => doorbell_job::own_addresses()?,
            None => vec![IpAddr::from([127, 0, 0, 1])],
        };
        let place = |host: &IpAddr| match host {
            IpAddr::V4(host) => format!("{host}:{port}"),
            IpAddr::V6(host) => format!("[{host}]:{port}"),
        };
        let places: Vec<_> = hosts.iter().map(place).collect();
        Ok(format!("{},served", places.join(",")))
    }
}

/// The hosts of a command line, each with the number of its processes if that is said. None stands
/// for this machine.
type Hosts = Vec<(Option<String>, Option<usize>)>;

fn hosts(words: &[String]) -> anyhow::Result<Hosts> {
    let host = |word: &String| {
        let (name, count) = match word.rsplit_once(':') {
            // An address of IPv6 has colons of its own.
            Some((name, count)) if !name.contains(':') || name.ends_with(']') => {
                let count: usize = count.parse().with_context(|| {
                    format!("`{word}`: the number of processes must follow the colon")
                })?;
                ensure!(count >= 1, "`{word}`: a host has at least one process");
                ensure!(
                    count <= MOST,
                    "`{word}`: `doorbell run` starts {MOST} processes at the most"
                );
                (name.trim_matches(['[', ']']), Some(count))
            }
            _ => (word.trim_matches(['[', ']']), None),
        };
        ensure!(!name.is_empty() && !name.starts_with('-'), "`{word}` is no host");
        Ok(((name != "localhost").then(|| name.to_owned()), count))
    };
    words.iter().map(host).collect()
}

/// The host of each process.
fn spread(count: usize, hosts: &Hosts) -> anyhow::Result<Vec<Option<String>>> {
    if hosts.is_empty() {
        return Ok(vec![None; count]);
    }
    let said: usize = hosts.iter().filter_map(|(_, count)| *count).sum();
    let open = hosts.iter().filter(|(_, count)| count.is_none()).count();
    ensure!(
        said == count || (said < count && open > 0),
        "`--hosts` says {said} processes, and `-n` and the colons between programs {count}: have \
         both say the same, or leave out `-n`, or the numbers behind the hosts"
    );
    let rest = count - said;
    let mut all = Vec::new();
    let mut opened = 0;
    for (host, said) in hosts {
        let of_host = said.unwrap_or_else(|| {
            // The first hosts have one process more if the rest can't be divided evenly.
            let of_host = rest / open + usize::from(opened < rest % open);
            opened += 1;
            of_host
        });
        all.extend(std::iter::repeat_n(host.clone(), of_host));
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        args: Args,
    }

    fn plan(line: &str) -> anyhow::Result<Vec<(String, String)>> {
        let words = std::iter::once("run").chain(line.split(' '));
        let plan = Plan::of(&Cli::try_parse_from(words)?.args)?;
        let told = plan.processes.into_iter();
        Ok(told
            .map(|process| (process.host.unwrap_or("here".to_owned()), process.command.join(" ")))
            .collect())
    }

    fn of(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(host, command)| ((*host).into(), (*command).into())).collect()
    }

    #[test]
    fn each_process_has_its_program_and_its_host() {
        for (line, expected) in [
            ("-n 2 ./a -n 3", &[("here", "./a -n 3"), ("here", "./a -n 3")][..]),
            ("-n 1 ./a x : -n 2 ./b", &[("here", "./a x"), ("here", "./b"), ("here", "./b")]),
            ("-n 3 --hosts p,q ./a", &[("p", "./a"), ("p", "./a"), ("q", "./a")]),
            ("-n 3 --hosts localhost:1,q ./a", &[("here", "./a"), ("q", "./a"), ("q", "./a")]),
            ("--hosts p:1,q:1 ./a", &[("p", "./a"), ("q", "./a")]),
        ] {
            assert_eq!(plan(line).expect(line), of(expected), "{line}");
        }
    }

    #[test]
    fn a_line_without_sense_is_refused_with_what_is_wrong() {
        for (line, expected) in [
            ("-n 0 ./a", "at least one process"),
            ("-n 2 ./a : -n x ./b", "a number must follow"),
            ("-n 2 ./a :", "both sides of a colon"),
            ("-n 5000 ./a", "4096 at the most"),
            ("-n 18446744073709551615 ./a : ./b", "4096 at the most"),
            ("--hosts p:99999999999 ./a", "4096 processes at the most"),
            ("--hosts p:18446744073709551615,q:1 ./a", "4096 processes at the most"),
            ("-n 3 --hosts p:1,q:1 ./a", "says 2 processes, and `-n` and the colons between"),
            ("-n 2 --hosts p:3,q ./a", "says 3 processes, and `-n` and the colons between"),
            ("--hosts p:x ./a", "must follow the colon"),
            ("--hosts -oProxyCommand=x ./a", "is no host"),
        ] {
            let why = format!("{:#}", plan(line).expect_err(line));
            assert!(why.contains(expected), "{line}: {why}");
        }
    }
}
