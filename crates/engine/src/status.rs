//! Shows the status of a session on the terminal.
//!
//! A command that writes to the terminal may use the full screen. Therefore, the status is the title of the terminal's
//! window; it is a line of standard error if a command is given and standard output is not a terminal.

use crate::arguments;
use rustix::termios::isatty;
use std::io::{self, Write};
use thalweg_lab::protocol::StatusReport;
use thalweg_units::Rate;

/// Escape sequences that save and restore the title (XTWINOPS 22 and 23 of xterm), for terminals that support them.
const SAVE: &str = "\x1b[22;2t";
const RESTORE: &str = "\x1b[23;2t";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Nowhere,
    Title,
    Line,
}

/// Shows the status on the terminal.
pub struct Status {
    kind: Kind,
}

impl Status {
    /// Selects the destination.
    pub fn new(options: &arguments::Shell) -> Status {
        let is_dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb" || term == "linux");
        let is_line = !options.command.is_empty() && !isatty(io::stdout());
        let kind = match (options.quiet || !isatty(io::stderr()), is_line, is_dumb) {
            (true, ..) | (false, false, true) => Kind::Nowhere,
            (false, true, _) => Kind::Line,
            (false, false, false) => Kind::Title,
        };
        let status = Status { kind };
        if kind == Kind::Title {
            status.write(SAVE);
        }
        status
    }

    /// Shows the current status of the path.
    pub fn show(&self, report: &StatusReport) {
        let text = text(report);
        match self.kind {
            Kind::Nowhere => {}
            Kind::Title => self.write(&format!("\x1b]2;thalweg: {text}\x07")),
            Kind::Line => self.write(&format!("\r\x1b[K{text}")),
        }
    }

    /// Removes the status.
    pub fn clear(&self) {
        match self.kind {
            Kind::Nowhere => {}
            Kind::Title => self.write(RESTORE),
            Kind::Line => self.write("\r\x1b[K"),
        }
    }

    fn write(&self, text: &str) {
        // The write fails if the terminal is closed.
        let _ = io::stderr().lock().write_all(text.as_bytes());
    }
}

/// Formats the known values: a second without packets has neither a delay nor losses.
fn text(report: &StatusReport) -> String {
    let [down, up] = report.rate_bps.map(rounded);
    let queue = report.queue_us.map_or("-".to_owned(), |us| format!("{:.1} ms", us / 1e3));
    let loss = report.loss_percent.map_or("-".to_owned(), |percent| format!("{percent:.1} %"));
    format!("{down} out, {up} in, queue {queue}, loss {loss}")
}

/// Formats a rate with three digits.
fn rounded(bps: u64) -> String {
    let unit = 10_u64.pow(bps.max(1).ilog10().saturating_sub(2));
    Rate(bps / unit * unit).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_status_shows_rates_with_three_digits_and_unknown_values_as_a_dash() {
        let busy = StatusReport {
            t_us: 1,
            rate_bps: [19_234_567, 412_345],
            queue_us: Some(12_340.0),
            loss_percent: Some(0.25),
        };
        assert_eq!(text(&busy), "19.2Mbps out, 412kbps in, queue 12.3 ms, loss 0.2 %");
        let idle = StatusReport { t_us: 1, rate_bps: [0, 0], queue_us: None, loss_percent: None };
        assert_eq!(text(&idle), "0bps out, 0bps in, queue -, loss -");
    }
}
