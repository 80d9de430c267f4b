//! `top`: shows the open connections as a live table.

use super::observable::Request;
use super::snapshot::OpenConnections;
use super::socket;
use super::sorting::{MAX_ROWS, SortBy};
use super::table::{self, COLUMNS};
use super::terminal::Terminal;
use super::words::count;
use crate::log;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use thalweg_store::Problem;

const INTERVAL: Duration = Duration::from_secs(2);

/// Returns the table once, for scripts and pipes.
///
/// # Errors
/// If no agent answers, or this user lacks the permission.
pub fn once(path: &Path, sort: SortBy) -> Result<String, Problem> {
    let open = fetch(path, sort, MAX_ROWS)?;
    if open.total > open.connections.len() as u64 {
        let (shown, total) = (count(open.connections.len() as u64), count(open.total));
        log::warning(&format!("showing the first {shown} of {total} connections, sorted by {}", table::heading(sort)));
    }
    Ok(table::lines(&open).join("\n") + "\n")
}

/// Shows the table on the terminal, until `q`, Ctrl-C or Ctrl-D is pressed, or SIGINT, SIGTERM or SIGHUP arrives.
///
/// # Errors
/// If the agent stops answering, the user lacks the permission, or standard input or output is not a terminal.
pub fn live(path: &Path, mut sort: SortBy) -> Result<(), Problem> {
    let failed = |error: io::Error| {
        Problem::failed("terminal", "the terminal", error, "a usable terminal", "sudo thalweg-agent top --once")
    };
    let is_over = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&is_over)).map_err(failed)?;
    }
    // Requested before the terminal is changed, so that an error is printed normally.
    fetch(path, sort, 1)?;
    let Some(mut terminal) = Terminal::take().map_err(failed)? else {
        return Err(Problem::refused(
            "no-terminal",
            "standard input or output",
            "a pipe or a file",
            "a terminal for a live table",
            "sudo thalweg-agent top --once",
        ));
    };
    while !is_over.load(Ordering::Relaxed) {
        let (rows, _) = terminal.size();
        let open = fetch(path, sort, rows)?;
        terminal.show(&screen(&open, sort, rows), HEADING).map_err(failed)?;
        match terminal.key(INTERVAL).map_err(failed)? {
            // q, Ctrl-C or Ctrl-D
            Some('q' | '\x03' | '\x04') => return Ok(()),
            Some(key) => sort = order(key).unwrap_or(sort),
            None => {}
        }
    }
    Ok(())
}

fn fetch(path: &Path, sort: SortBy, limit: usize) -> Result<OpenConnections, Problem> {
    socket::understood(path, socket::ask(path, &Request::Open { sort, limit })?)
}

fn order(key: char) -> Option<SortBy> {
    COLUMNS.iter().filter_map(|column| column.key).find(|(of, _)| *of == key).map(|(_, by)| by)
}

/// Index of the screen line with the table's heading.
const HEADING: usize = 2;

fn screen(open: &OpenConnections, sort: SortBy, rows: usize) -> Vec<String> {
    let keys: Vec<String> =
        COLUMNS.iter().filter_map(|column| Some(format!("{} {}", column.key?.0, column.heading))).collect();
    let total = count(open.total);
    let mut lines = vec![
        format!("{total} recorded open connections, sorted by {}", table::heading(sort)),
        format!("sort: {}   quit: q", keys.join("  ")),
    ];
    lines.extend(table::lines(open));
    lines.truncate(rows);
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::show::fixture;

    #[test]
    fn a_screen_names_its_contents_and_the_available_keys() {
        let open =
            OpenConnections { looked_us: 0, total: 1_234, connections: vec![fixture::download(), fixture::upload()] };
        let lines = screen(&open, SortBy::MinRtt, 4);
        assert_eq!(lines[0], "1,234 recorded open connections, sorted by MINRTT");
        assert!(lines[1].contains("g GOODPUT") && lines[1].ends_with("quit: q"), "{}", lines[1]);
        assert!(lines[HEADING].starts_with("LOCAL "), "{}", lines[HEADING]);
        assert_eq!(lines.len(), 4, "no more than fit");
    }

    #[test]
    fn keys_select_sort_orders() {
        assert_eq!([order('g'), order('m'), order('?')], [Some(SortBy::Goodput), Some(SortBy::MinRtt), None]);
    }
}
