//! `status`: prints the state of recording.

use super::observable::Request;
use super::snapshot::Snapshot;
use super::socket;
use super::words::{age, bytes, count};
use std::fmt::Write;
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};
use thalweg_store::Problem;

/// Returns the status of the agent on a socket, as text or JSON.
///
/// # Errors
/// If no agent answers, this user lacks the permission, or the answer is malformed.
pub fn status(path: &Path, json: bool) -> Result<String, Problem> {
    let answer = socket::ask(path, &Request::Status)?;
    if json {
        // Printed unchanged, so that fields of a newer agent are kept.
        return Ok(format!("{answer:#}\n"));
    }
    Ok(text(&socket::understood(path, answer)?))
}

fn text(snapshot: &Snapshot) -> String {
    let Snapshot { counters, writer, usage, .. } = snapshot;
    let mut text = String::new();
    let mut line = |name: &str, what: String| writeln!(text, "  {name:<13} {what}").expect("a string grows");
    line(
        "since",
        format!("{} ({})", moment(snapshot.since_us), age(snapshot.now_us.saturating_sub(snapshot.since_us))),
    );
    line("process", format!("{}, thalweg-agent {}, Linux {}", snapshot.pid, snapshot.version, snapshot.kernel));
    let sampled = match snapshot.sampled_one_in {
        0 | 1 => String::new(),
        n => format!(", one in {}: {} not sampled", count(n), count(counters.unsampled)),
    };
    line(
        "connections",
        format!("{} open now, in cgroup {}{sampled}", count(snapshot.connections_open), snapshot.cgroup),
    );
    let [opened, closed, joined] = [counters.opened, counters.closed, counters.joined].map(count);
    line("", format!("{opened} opened, {closed} closed, {joined} already open when first observed"));
    let [close, transfer, interim] = [counters.close_rows, counters.transfer_rows, counters.interim_rows].map(count);
    line("rows", format!("{close} close, {transfer} transfer, {interim} interim"));
    let (files, waiting) = (count(writer.files), count(writer.rows_waiting));
    line("files", format!("{files} ({}) in {}; {waiting} rows queued", bytes(writer.bytes), snapshot.out));
    line("addresses", snapshot.addresses.clone());
    if let Some(percent) = snapshot.away_percent {
        line("off CPU", format!("{percent:.1} % of the last minute"));
    }
    line("lost", lost(snapshot));
    if counters.clock_steps > 0 {
        line("clock", format!("stepped {}", times(counters.clock_steps)));
    }
    let metrics = |at: &String| format!("http://{at}/metrics");
    line("metrics", snapshot.listen.as_ref().map_or_else(|| "not served".to_owned(), metrics));
    let maps = usage.maps_bytes.map(|maps| format!(", {} of kernel maps", bytes(maps))).unwrap_or_default();
    line("uses", format!("{} of memory{maps}, {} of CPU time", bytes(usage.process_bytes), age(usage.cpu_us)));
    for program in &snapshot.programs {
        if let Some(mean) = program.mean_ns() {
            line("in the kernel", format!("{}: {mean:.0} ns per run, {} runs", program.name, count(program.runs)));
        }
    }
    let mut head = match (&snapshot.not_attached, &writer.trouble) {
        (None, None) => "recording\n".to_owned(),
        (Some(why), _) => format!("not recording: {why}\n"),
        (None, Some(trouble)) => format!("recording, but {trouble}\n"),
    };
    if let (Some(_), Some(trouble)) = (&snapshot.not_attached, &writer.trouble) {
        head += &format!("records: {trouble}\n");
    }
    if let Some(trouble) = &snapshot.reload_trouble {
        head += &format!("the last reload of the settings failed: {trouble}\n");
    }
    head + &text
}

fn lost(snapshot: &Snapshot) -> String {
    let all = [
        (snapshot.counters.lost_events, "events dropped because the queue was full"),
        (snapshot.counters.lost_connections, "attempts to record a connection while the table was full (--max-open)"),
        (snapshot.writer.rows_lost, "rows that could not be written"),
    ];
    let lost: Vec<String> =
        all.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{} {what}", count(*n))).collect();
    let lost = match snapshot.counters.reattached {
        0 => lost,
        n => lost.into_iter().chain([format!("connections while no program was attached ({})", times(n))]).collect(),
    };
    if lost.is_empty() { "nothing".to_owned() } else { lost.join(", ") }
}

fn times(number: u64) -> String {
    if number == 1 { "once".to_owned() } else { format!("{} times", count(number)) }
}

/// Formats a UNIX time in UTC: 2026-01-31 07:08:09 UTC.
fn moment(us: u64) -> String {
    let moment = humantime::format_rfc3339_seconds(UNIX_EPOCH + Duration::from_micros(us)).to_string();
    moment.replace('T', " ").replace('Z', " UTC")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::show::fixture;

    #[test]
    fn the_status_of_a_running_agent_fits_one_screen() {
        let expected = "\
recording
  since         2023-11-14 22:13:20 UTC (27h01m)
  process       4242, thalweg-agent 0.1.0, Linux 6.18.5
  connections   79 open now, in cgroup /sys/fs/cgroup
                1,234,567 opened, 1,234,500 closed, 12 already open when first observed
  rows          1,234,500 close, 3,300,100 transfer, 204 interim
  files         57 (1.23 GB) in /var/lib/thalweg/records; 804 rows queued
  addresses     truncated
  off CPU       0.4 % of the last minute
  lost          nothing
  metrics       http://127.0.0.1:9477/metrics
  uses          8.10 MB of memory, 12.3 MB of kernel maps, 1m01s of CPU time
  in the kernel record_sockops: 85 ns per run, 2,000,000 runs
";
        assert_eq!(text(&fixture::agent().snapshot), expected);
    }

    #[test]
    fn problems_are_listed_first_or_counted() {
        let mut snapshot = fixture::agent().snapshot;
        snapshot.writer.trouble =
            Some("cannot merge files in /var/lib/thalweg/records: no space left on device".to_owned());
        snapshot.writer.rows_lost = 1_024;
        snapshot.counters.lost_events = 3;
        snapshot.counters.clock_steps = 1;
        snapshot.sampled_one_in = 10;
        snapshot.counters.unsampled = 9_000;
        snapshot.listen = None;
        snapshot.counters.reattached = 2;
        snapshot.reload_trouble = Some("tune.toml, line 3: unknown field `alhpa`".to_owned());
        let text = text(&snapshot);
        for part in [
            "recording, but cannot merge files in /var/lib/thalweg/records: no space left on device\n",
            "79 open now, in cgroup /sys/fs/cgroup, one in 10: 9,000 not sampled\n",
            "3 events dropped because the queue was full, 1,024 rows that could not be written, \
             connections while no program was attached (2 times)\n",
            "\nthe last reload of the settings failed: tune.toml, line 3: unknown field `alhpa`\n",
            "stepped once\n",
            "not served\n",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    #[test]
    fn a_removed_cgroup_is_the_first_line_of_the_status() {
        let mut snapshot = fixture::agent().snapshot;
        snapshot.not_attached = Some("cgroup /a was removed".to_owned());
        assert!(text(&snapshot).starts_with("not recording: cgroup /a was removed\n  since "), "{}", text(&snapshot));
    }
}
