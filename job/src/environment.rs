//! The environment variables of a process, which tell how it was started.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

use crate::error::JobError;
use crate::sys;

/// The variable that names the descriptor of a connection to a launcher.
pub(crate) const PMI_FD: &str = "PMI_FD";

/// The variables that say how a process was started, or how it is to run. Each must be text.
const READ: [&str; 24] = [
    "DOORBELL_RANK",
    "DOORBELL_SIZE",
    "DOORBELL_RENDEZVOUS",
    "DOORBELL_ADDRESSES",
    SECRET,
    SECRET_FILE,
    "DOORBELL_WITHIN",
    "DOORBELL_DEVICE",
    "DOORBELL_INTERFACE",
    "DOORBELL_ROUTES",
    "DOORBELL_STALL",
    "DOORBELL_SPIN",
    "DOORBELL_KEY",
    "DOORBELL_CARRIER",
    "DOORBELL_PROCESSES",
    "DOORBELL_THREADS",
    PMI_FD,
    "PMI_RANK",
    "PMI_SIZE",
    "SLURM_PROCID",
    "SLURM_NTASKS",
    "SLURM_STEP_ID",
    "OMPI_COMM_WORLD_RANK",
    "OMPI_COMM_WORLD_SIZE",
];

/// The variable that has the secret of a job, and the variable that names the file with it.
pub(crate) const SECRET: &str = "DOORBELL_SECRET";
pub(crate) const SECRET_FILE: &str = "DOORBELL_SECRET_FILE";

/// The environment variables of a process.
///
/// A variable that names a descriptor, as `PMI_FD` does, counts only in the
/// [environment of this process](Self::of_process): only whoever has started the process knows what
/// it has inherited. A connection that this program has itself is [given](Self::with_launcher).
///
/// The number in such a variable may be out of date. So the descriptor is duplicated, and the
/// duplicate is checked before anything is read or written: it must be a connected Unix stream
/// socket, and not standard input, output or error. Otherwise the error names the variable, the
/// number, and what is there instead.
#[derive(Clone, Default, Debug)]
pub struct Environment {
    variables: BTreeMap<String, String>,
    /// The names of variables whose values are empty.
    empty: BTreeSet<String>,
    /// The variables whose values are no text in UTF-8.
    no_text: BTreeMap<String, OsString>,
    launcher: Option<Arc<UnixStream>>,
}

impl Environment {
    /// The environment of this process. Variables whose values are empty count as not set, but for
    /// `DOORBELL_SECRET` and `DOORBELL_SECRET_FILE`, which must not be empty. Where the value of a
    /// variable that says how to run is no text in UTF-8, [`Place::find_in`](crate::Place::find_in)
    /// returns an error that names the variable.
    pub fn of_process() -> Self {
        let (mut variables, mut no_text) = (Vec::new(), BTreeMap::new());
        for (name, value) in std::env::vars_os() {
            let Ok(name) = name.into_string() else { continue };
            match value.into_string() {
                Ok(value) => variables.push((name, value)),
                Err(value) => drop(no_text.insert(name, value)),
            }
        }
        Self { no_text, ..variables.into_iter().collect() }
    }

    /// Checks that all variables which say how a process runs are text.
    pub(crate) fn check(&self) -> Result<(), JobError> {
        let found = READ.iter().find_map(|name| Some((*name, self.no_text.get(*name)?)));
        let Some((variable, value)) = found else { return Ok(()) };
        let found = match variable {
            // What was garbled is nearly the secret.
            SECRET | "DOORBELL_KEY" => format!("{} bytes, not shown here", value.len()),
            _ => value.to_string_lossy().into_owned(),
        };
        Err(JobError::Environment { variable, found, expected: "it must be text in UTF-8" })
    }

    /// Whether a variable is set to an empty value.
    pub(crate) fn is_empty(&self, name: &str) -> bool {
        self.empty.contains(name)
    }

    /// Sets the connection to a launcher that speaks PMI-1, which is used instead of the descriptor
    /// that `PMI_FD` names.
    #[must_use]
    pub fn with_launcher(self, connection: UnixStream) -> Self {
        Self { launcher: Some(Arc::new(connection)), ..self }
    }

    /// Returns whether a connection to a launcher that speaks PMI-1 was given, or `PMI_FD` names
    /// one.
    pub(crate) fn has_launcher(&self) -> bool {
        self.launcher.is_some() || self.get(PMI_FD).is_some()
    }

    /// The connection to a launcher that speaks PMI-1.
    pub(crate) fn launcher(&self) -> Result<UnixStream, JobError> {
        if let Some(launcher) = &self.launcher {
            let system = |why| JobError::System { what: "using the launcher's connection", why };
            return launcher.try_clone().map_err(system);
        }
        match sys::inherited(PMI_FD)? {
            Some(launcher) if std::env::var(PMI_FD).ok().as_deref() == self.get(PMI_FD) => {
                Ok(launcher)
            }
            _ => Err(JobError::Environment {
                variable: PMI_FD,
                found: self.get(PMI_FD).unwrap_or_default().to_owned(),
                expected: "only the environment that this process was started with may name a \
                           descriptor",
            }),
        }
    }

    /// The value of a variable; `None` if it is not set.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str)
    }

    /// How long all processes together may take to come, if `DOORBELL_WITHIN` is set.
    pub(crate) fn within(&self) -> Result<Option<Duration>, JobError> {
        let seconds = self.number("DOORBELL_WITHIN", "a decimal number of seconds")?;
        Ok(seconds.map(Duration::from_secs))
    }

    /// The value of a variable that is a number; `None` if the variable is not set.
    pub(crate) fn number<T: std::str::FromStr>(
        &self,
        variable: &'static str,
        expected: &'static str,
    ) -> Result<Option<T>, JobError> {
        let Some(found) = self.get(variable) else { return Ok(None) };
        let wrong = |_| JobError::Environment { variable, found: found.to_owned(), expected };
        found.parse().map(Some).map_err(wrong)
    }

    /// The value of a variable that is a number, and has to be set when `beside` is set.
    pub(crate) fn needed<T: std::str::FromStr>(
        &self,
        variable: &'static str,
        beside: &'static str,
    ) -> Result<T, JobError> {
        self.number(variable, "a decimal number")?.ok_or(JobError::Lacking { variable, beside })
    }
}

impl FromIterator<(String, String)> for Environment {
    fn from_iter<I: IntoIterator<Item = (String, String)>>(variables: I) -> Self {
        let mut all = Self::default();
        for (name, value) in variables {
            match value.is_empty() {
                true => drop(all.empty.insert(name)),
                false => drop(all.variables.insert(name, value)),
            }
        }
        all
    }
}
