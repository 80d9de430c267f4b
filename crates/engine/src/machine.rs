//! Properties of this machine and of the user's command for run.json, and the resources that a run needs.

use std::fs;
use thalweg_store::{Exit, Host, Problem, Shortage, raise_open_files};

/// Environment variable with the user's command, as a JSON array of words.
const COMMAND: &str = "THALWEG_COMMAND";

/// Returns the number of CPUs that this process may use.
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Open files that the program needs in addition to those of experiments.
const OPEN_FILES: u64 = 64;

/// Open files that are reserved for one running experiment.
const OPEN_FILES_OF_EXPERIMENT: u64 = 16;

/// Raises the limit of open files as far as permitted, and returns the number of concurrent experiments that it
/// permits, at least one.
///
/// # Errors
/// `too-few-descriptors`: the limit is too low for one experiment. This is checked first, because a probe of the
/// machine that runs out of descriptors would report missing algorithms or permissions.
pub fn experiments_that_fit() -> Result<usize, Problem> {
    let Some(limit) = raise_open_files() else { return Ok(usize::MAX) };
    match limit.saturating_sub(OPEN_FILES) / OPEN_FILES_OF_EXPERIMENT {
        0 => Err(Problem {
            exit: Exit::Exhausted,
            code: Shortage::Descriptors.code(),
            place: "the limit of open files".to_owned(),
            found: limit.to_string(),
            expected: format!("at least {}", OPEN_FILES + OPEN_FILES_OF_EXPERIMENT),
            hint: Shortage::Descriptors.hint().to_owned(),
        }),
        fit => Ok(usize::try_from(fit).unwrap_or(usize::MAX)),
    }
}

/// Returns the properties of this machine; unknown ones are empty.
pub fn host() -> Host {
    let uname = rustix::system::uname();
    let kernel = [uname.sysname(), uname.release(), uname.version()].map(|part| part.to_string_lossy().into_owned());
    Host {
        os: value_in("/etc/os-release", "PRETTY_NAME=").trim_matches('"').to_owned(),
        kernel: kernel.join(" "),
        cpu: value_in("/proc/cpuinfo", "model name").trim_start_matches([' ', '\t', ':']).to_owned(),
        cores: cores(),
    }
}

/// Returns the text after `key` in the first line of `path` that starts with it.
fn value_in(path: &str, key: &str) -> String {
    let text = fs::read_to_string(path).unwrap_or_default();
    text.lines().find_map(|line| line.strip_prefix(key)).unwrap_or_default().to_owned()
}

/// Returns the command that the user typed; `None` if the caller did not pass it on.
pub fn command() -> Result<Option<Vec<String>>, Problem> {
    let Some(text) = std::env::var_os(COMMAND) else { return Ok(None) };
    let text = text.to_string_lossy();
    serde_json::from_str(&text).map(Some).map_err(|_| Problem {
        exit: Exit::Refused,
        code: "bad-command",
        place: COMMAND.to_owned(),
        found: format!("`{text}`"),
        expected: "a JSON array of the command's words".to_owned(),
        hint: format!("unset {COMMAND}"),
    })
}
