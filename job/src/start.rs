//! The start of a process: which launcher has started it, and how it meets the others.

use std::path::PathBuf;

use crate::MOST_PROCESSES;
use crate::environment::{Environment, PMI_FD, SECRET, SECRET_FILE};
use crate::error::JobError;
use crate::nodes;

/// The place of a process in its job.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Seat {
    /// The number of the process, from 0 on.
    pub rank: usize,
    /// How many processes the job has.
    pub size: usize,
}

impl Seat {
    fn new(
        (rank, size): (usize, usize),
        (rank_variable, size_variable): (&'static str, &'static str),
    ) -> Result<Self, JobError> {
        if !(1..=MOST_PROCESSES).contains(&size) {
            let expected = "a job has at least 1 process, and 65,536 at most";
            let (variable, found) = (size_variable, size.to_string());
            return Err(JobError::Environment { variable, found, expected });
        }
        if rank >= size {
            return Err(JobError::Rank { rank, size, rank_variable, size_variable });
        }
        Ok(Self { rank, size })
    }
}

/// The way in which this process was started, by its environment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Start {
    /// The process was started by itself, and is not part of a job.
    Alone,
    /// The addresses of all processes are given.
    Addresses { seat: Seat, addresses: Vec<String> },
    /// A launcher that speaks PMI-1 over a descriptor: Hydra, or Slurm.
    Pmi { seat: Seat },
    /// Somebody who says where the processes meet, or a launcher of which that is known.
    Rendezvous { seat: Seat, at: Meeting, secret: Option<Secret>, by: By },
}

/// The place of the rendezvous.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Meeting {
    /// Hosts and ports of the process that serves the others. It listens to the first port that is
    /// free.
    pub places: Vec<(String, u16)>,
    /// Whether process 0 serves the others. If not, somebody else does.
    pub by_first: bool,
}

impl Meeting {
    /// A meeting at process 0, on a host, at one of the ports that belong to a name: jobs of other
    /// names most likely use other ports.
    fn at_one_of(host: &str, name: &str) -> Self {
        // FNV-1a, which gives the same in every process.
        let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        let blocks = u64::from((LAST_PORT - FIRST_PORT) / PORTS);
        let first = FIRST_PORT + (hash % blocks) as u16 * PORTS;
        let places = (first..first + PORTS).map(|port| (host.to_owned(), port)).collect();
        Self { places, by_first: true }
    }
}

/// Where the secret of a job comes from.
#[derive(Clone, PartialEq, Eq)]
pub enum Secret {
    /// A variable, by this value.
    Text(String),
    /// The path of a file.
    File(PathBuf),
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Text(_) => f.write_str("a secret of DOORBELL_SECRET"),
            Self::File(path) => write!(f, "the secret in {}", path.display()),
        }
    }
}

/// Whose variables say what a process is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum By {
    /// Doorbell's own, which `doorbell run` sets, too.
    Doorbell,
    /// The launcher `srun` of Slurm.
    Slurm,
    /// The launcher `mpiexec` of Open MPI.
    OpenMpi,
}

impl std::fmt::Display for By {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Doorbell => "Doorbell",
            Self::Slurm => "Slurm",
            Self::OpenMpi => "Open MPI",
        })
    }
}

/// How many ports a job whose launcher names none may use.
const PORTS: u16 = 16;
/// The ports that such jobs use: those between the well known ones and those that systems give out.
const FIRST_PORT: u16 = 20_000;
const LAST_PORT: u16 = 30_000;

impl Start {
    /// Parses an environment. The first of these counts:
    ///
    /// 1. `DOORBELL_RANK` with `DOORBELL_ADDRESSES`, or with `DOORBELL_SIZE` and
    ///    `DOORBELL_RENDEZVOUS`;
    /// 2. `PMI_FD` with `PMI_RANK`;
    /// 3. `SLURM_PROCID` with `SLURM_NTASKS`, of a step of `srun`;
    /// 4. `OMPI_COMM_WORLD_RANK` with `OMPI_COMM_WORLD_SIZE`.
    ///
    /// # Errors
    /// When variables make no sense or are no text, or one of several that belong together is not
    /// set.
    pub fn of(environment: &Environment) -> Result<Self, JobError> {
        environment.check()?;
        if environment.get("DOORBELL_RANK").is_some() {
            return Self::of_doorbell(environment);
        }
        for beside in ["DOORBELL_ADDRESSES", "DOORBELL_SIZE"] {
            if environment.get(beside).is_some() {
                return Err(JobError::Lacking { variable: "DOORBELL_RANK", beside });
            }
        }
        if environment.has_launcher() {
            let rank = environment.needed("PMI_RANK", PMI_FD)?;
            // Slurm does not set it, but its own variable.
            let names = match environment.get("PMI_SIZE") {
                Some(_) => ("PMI_RANK", "PMI_SIZE"),
                None => ("PMI_RANK", "SLURM_NTASKS"),
            };
            let seat = Seat::new((rank, environment.needed(names.1, names.0)?), names)?;
            return Ok(Self::Pmi { seat });
        }
        if environment.get("SLURM_PROCID").is_some()
            && environment.get("SLURM_STEP_ID").is_some()
            && !is_batch(environment)
        {
            return Self::of_slurm(environment);
        }
        if environment.get("OMPI_COMM_WORLD_RANK").is_some() {
            return Self::of_open_mpi(environment);
        }
        if environment.get("DOORBELL_RENDEZVOUS").is_some() {
            let (variable, beside) = ("DOORBELL_RANK", "DOORBELL_RENDEZVOUS");
            return Err(JobError::Lacking { variable, beside });
        }
        Ok(Self::Alone)
    }

    fn of_doorbell(environment: &Environment) -> Result<Self, JobError> {
        const NAMES: (&str, &str) = ("DOORBELL_RANK", "DOORBELL_SIZE");
        let rank = environment.needed("DOORBELL_RANK", "DOORBELL_SIZE")?;
        if let Some(addresses) = environment.get("DOORBELL_ADDRESSES") {
            let addresses: Vec<_> = addresses.split(',').map(|one| one.trim().to_owned()).collect();
            let names = ("DOORBELL_RANK", "DOORBELL_ADDRESSES");
            let seat = Seat::new((rank, addresses.len()), names)?;
            return Ok(Self::Addresses { seat, addresses });
        }
        let size = environment.needed("DOORBELL_SIZE", "DOORBELL_RANK")?;
        let seat = Seat::new((rank, size), NAMES)?;
        let at = rendezvous(environment)?;
        let (variable, beside) = ("DOORBELL_RENDEZVOUS", "DOORBELL_RANK");
        let at = at.ok_or(JobError::Lacking { variable, beside })?;
        Ok(Self::Rendezvous { seat, at, secret: secret(environment), by: By::Doorbell })
    }

    fn of_slurm(environment: &Environment) -> Result<Self, JobError> {
        const NAMES: (&str, &str) = ("SLURM_PROCID", "SLURM_NTASKS");
        let [rank, size] = [
            environment.needed("SLURM_PROCID", "SLURM_NTASKS")?,
            environment.needed("SLURM_NTASKS", "SLURM_PROCID")?,
        ];
        let seat = Seat::new((rank, size), NAMES)?;
        let at = match rendezvous(environment)? {
            Some(at) => at,
            None => {
                let variable = "SLURM_STEP_NODELIST";
                let list = environment.get(variable).or(environment.get("SLURM_JOB_NODELIST"));
                let list = list.ok_or(JobError::Lacking { variable, beside: "SLURM_PROCID" })?;
                let host = nodes::first(list).ok_or_else(|| JobError::Environment {
                    variable,
                    found: list.to_owned(),
                    expected: "names of nodes, as `a1,b[3-5,7]`",
                })?;
                let numbers = ["SLURM_JOB_ID", "SLURM_STEP_ID"]
                    .map(|name| environment.get(name).unwrap_or_default());
                Meeting::at_one_of(&host, &numbers.join("."))
            }
        };
        Ok(Self::Rendezvous { seat, at, secret: secret(environment), by: By::Slurm })
    }

    fn of_open_mpi(environment: &Environment) -> Result<Self, JobError> {
        const NAMES: (&str, &str) = ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE");
        let rank = environment.needed(NAMES.0, NAMES.1)?;
        let size = environment.needed(NAMES.1, NAMES.0)?;
        let seat = Seat::new((rank, size), NAMES)?;
        let all_here: Option<usize> =
            environment.number("OMPI_COMM_WORLD_LOCAL_SIZE", "a decimal number")?;
        let at = match rendezvous(environment)? {
            Some(at) => at,
            None if all_here == Some(size) => {
                // Each run of `mpiexec` has a name space of its own.
                let name = ["PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid", "PMIX_SERVER_URI2"];
                let name = name.iter().find_map(|name| environment.get(name)).unwrap_or_default();
                Meeting::at_one_of("127.0.0.1", name)
            }
            None => {
                let (variable, beside) = ("DOORBELL_RENDEZVOUS", "OMPI_COMM_WORLD_RANK");
                return Err(JobError::Lacking { variable, beside });
            }
        };
        Ok(Self::Rendezvous { seat, at, secret: secret(environment), by: By::OpenMpi })
    }
}

/// Returns whether the process is the script of a Slurm batch job, rather than a task of a step.
fn is_batch(environment: &Environment) -> bool {
    // A script has the number 0xfffffffb of steps, or the name "batch".
    matches!(environment.get("SLURM_STEP_ID"), Some("4294967291" | "batch"))
}

/// The meeting that `DOORBELL_RENDEZVOUS` names: `HOST:PORT`, or several with commas between that
/// are tried in turn. Process 0 serves the others there, unless `served` follows, which says that
/// somebody else does.
fn rendezvous(environment: &Environment) -> Result<Option<Meeting>, JobError> {
    let variable = "DOORBELL_RENDEZVOUS";
    let Some(found) = environment.get(variable) else { return Ok(None) };
    let (at, by_first) = match found.strip_suffix(",served") {
        Some(at) => (at, false),
        None => (found, true),
    };
    let places: Option<Vec<_>> = at.split(',').map(place).collect();
    let expected = "HOST:PORT, where process 0 listens, with a port from 1 to 65535";
    let wrong = || JobError::Environment { variable, found: found.to_owned(), expected };
    Ok(Some(Meeting { places: places.ok_or_else(wrong)?, by_first }))
}

/// A host and a port; none if that is no such text.
fn place(text: &str) -> Option<(String, u16)> {
    let (host, port) = text.trim().rsplit_once(':')?;
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let port = port.parse().ok().filter(|&port| port != 0)?;
    (!host.is_empty()).then(|| (host.to_owned(), port))
}

/// The secret that the environment has or names. One that is set and empty counts: a job whose
/// secret got lost on its way must not run without one.
fn secret(environment: &Environment) -> Option<Secret> {
    let set = |name| environment.get(name).or(environment.is_empty(name).then_some(""));
    let text = set(SECRET).map(|text| Secret::Text(text.to_owned()));
    text.or_else(|| set(SECRET_FILE).map(|path| Secret::File(path.into())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(variables: &[(&str, &str)]) -> Result<Start, JobError> {
        let owned = variables.iter().map(|(name, value)| ((*name).into(), (*value).into()));
        Start::of(&owned.collect())
    }

    const SLURM: [(&str, &str); 5] = [
        ("SLURM_PROCID", "2"),
        ("SLURM_NTASKS", "4"),
        ("SLURM_JOB_ID", "17"),
        ("SLURM_STEP_ID", "0"),
        ("SLURM_STEP_NODELIST", "gpu[07-09],login"),
    ];

    #[test]
    fn a_process_of_an_empty_environment_is_alone() {
        assert_eq!(of(&[]).ok(), Some(Start::Alone));
    }

    #[test]
    fn a_process_of_slurm_without_pmi_meets_the_others_at_the_first_node() {
        let Ok(Start::Rendezvous { seat, at, by, secret }) = of(&SLURM) else { panic!() };
        assert_eq!((seat.rank, seat.size, by, secret), (2, 4, By::Slurm, None));
        assert_eq!((&*at.places[0].0, at.by_first), ("gpu07", true));
        assert_eq!(at.places.len(), usize::from(PORTS));
        let mut next = SLURM;
        next[3].1 = "1";
        let Ok(Start::Rendezvous { at: other, .. }) = of(&next) else { panic!() };
        assert_ne!(at, other, "another step");
    }

    #[test]
    fn the_script_of_a_batch_job_is_not_a_task() {
        let mut script = SLURM;
        script[3].1 = "4294967291";
        assert_eq!(of(&script).ok(), Some(Start::Alone));
    }

    #[test]
    fn what_a_user_sets_goes_before_what_a_launcher_sets() {
        let own = [("DOORBELL_RANK", "1"), ("DOORBELL_ADDRESSES", "shm:a,shm:b")];
        let all: Vec<_> = SLURM.iter().chain(&own).chain(&[("PMI_FD", "5")]).copied().collect();
        let seat = Seat { rank: 1, size: 2 };
        let addresses = vec!["shm:a".to_owned(), "shm:b".to_owned()];
        assert_eq!(of(&all).ok(), Some(Start::Addresses { seat, addresses }));
    }

    #[test]
    fn a_descriptor_of_pmi_goes_before_the_variables_of_slurm() {
        let all: Vec<_> =
            SLURM.iter().chain(&[("PMI_FD", "5"), ("PMI_RANK", "2")]).copied().collect();
        assert_eq!(of(&all).ok(), Some(Start::Pmi { seat: Seat { rank: 2, size: 4 } }));
    }

    #[test]
    fn processes_of_open_mpi_on_one_machine_meet_there_and_others_must_be_told_where() {
        let here = [
            ("OMPI_COMM_WORLD_RANK", "0"),
            ("OMPI_COMM_WORLD_SIZE", "2"),
            ("OMPI_COMM_WORLD_LOCAL_SIZE", "2"),
        ];
        let Ok(Start::Rendezvous { at, by, .. }) = of(&here) else { panic!() };
        assert_eq!((&*at.places[0].0, by), ("127.0.0.1", By::OpenMpi));
        let mut apart = here;
        apart[2].1 = "1";
        let why = of(&apart).unwrap_err();
        assert!(why.to_string().contains("DOORBELL_RENDEZVOUS"), "{why}");
    }

    #[test]
    fn values_that_make_no_sense_are_named_with_what_is_expected() {
        for (set, lacks) in [
            (("DOORBELL_RANK", "0"), "DOORBELL_SIZE is not"),
            (("DOORBELL_SIZE", "2"), "DOORBELL_RANK is not"),
            (("DOORBELL_RENDEZVOUS", "head:7000"), "DOORBELL_RANK is not"),
            (("DOORBELL_ADDRESSES", "shm:a"), "DOORBELL_RANK is not"),
        ] {
            // A variable without a value counts as not set.
            let lacking = of(&[set, ("PMI_FD", "")]).unwrap_err().to_string();
            assert!(lacking.contains(set.0) && lacking.contains(lacks), "{lacking}");
        }
        let beyond =
            [("DOORBELL_RANK", "4"), ("DOORBELL_SIZE", "4"), ("DOORBELL_RENDEZVOUS", "head:7000")];
        let why = of(&beyond).unwrap_err().to_string();
        assert!(why.contains("DOORBELL_RANK is 4") && why.contains("DOORBELL_SIZE is 4"), "{why}");
        let mut nowhere = beyond;
        (nowhere[0].1, nowhere[2].1) = ("1", "head");
        let why = of(&nowhere).unwrap_err().to_string();
        assert!(why.contains("`head`") && why.contains("HOST:PORT"), "{why}");
    }
}
