//! `tune status` and `tune explain`: queries of a tuning agent.

use super::chooser::prefix_of;
use super::explain::Explained;
use super::options::Query;
use super::view::Status;
use super::watchdog_status::WatchdogStatus;
use crate::show::observable::Request;
use crate::show::socket;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::path::Path;
use thalweg_store::Problem;

/// Prints the answer as text or JSON. If the agent was killed, `status` prints the state of its watchdog, and fails.
///
/// # Errors
/// If a tuning agent does not answer, the prefix is invalid, or `print` fails.
pub fn answer(query: &Query, print: &mut dyn FnMut(&str) -> Result<(), Problem>) -> Result<(), Problem> {
    match query {
        Query::Status { json, limit, socket } => {
            let answer = ask(socket, &Request::Tuning { limit: *limit }).inspect_err(|problem| {
                if problem.code == NOT_RECORDING
                    && let Some(watchdog) = WatchdogStatus::find(socket)
                {
                    // A write error is ignored, because the missing agent is reported.
                    let _ = print(&if *json { watchdog.json() } else { watchdog.text() });
                }
            })?;
            print(&shown::<Status>(socket, answer, *json, Status::text)?)
        }
        Query::Explain { prefix, json, socket } => {
            prefix_of(prefix).map_err(|found| {
                let expected = "an address or a prefix such as 192.0.2.0/24 or 2001:db8::/48";
                Problem::refused(
                    "bad-prefix",
                    "tune explain",
                    found,
                    expected,
                    "`thalweg-agent tune status` lists the known destinations",
                )
            })?;
            let answer = ask(socket, &Request::Explain { prefix: prefix.clone() })?;
            print(&shown::<Explained>(socket, answer, *json, Explained::text)?)
        }
    }
}

const NOT_RECORDING: &str = "not-recording";

fn ask(socket: &Path, request: &Request) -> Result<Value, Problem> {
    let answer = socket::ask(socket, request).map_err(|problem| match problem.code {
        NOT_RECORDING => Problem {
            expected: "a running `thalweg-agent tune`".to_owned(),
            hint: "sudo systemctl start thalweg-tune, or: sudo thalweg-agent tune".to_owned(),
            ..problem
        },
        _ => problem,
    })?;
    if answer.get("tuning") == Some(&Value::Bool(false)) {
        let (place, hint) = (socket.display().to_string(), "stop it, then start the tuner: sudo thalweg-agent tune");
        return Err(Problem::failed(
            "not-tuning",
            &place,
            "an agent that only records",
            "an agent that runs `tune`",
            hint,
        ));
    }
    Ok(answer)
}

fn shown<T: DeserializeOwned>(
    socket: &Path,
    answer: Value,
    json: bool,
    text: impl Fn(&T) -> String,
) -> Result<String, Problem> {
    if json {
        // Printed unchanged, so that unknown fields are kept.
        return Ok(format!("{answer:#}\n"));
    }
    Ok(text(&socket::understood(socket, answer)?))
}
