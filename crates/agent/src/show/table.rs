//! Formats the table of open connections. Cells contain no blanks, so that scripts can split the lines.

use super::snapshot::{Open, OpenConnections};
use super::sorting::SortBy;
use super::words::{age, short, time};

/// A column: its heading, its sort key, and its content.
pub struct Column {
    /// Heading.
    pub heading: &'static str,
    /// Key that selects the column for sorting, and the sort order; `None` if the table cannot be sorted by it.
    pub key: Option<(char, SortBy)>,
    show: fn(&Open) -> String,
    is_text: bool,
}

const fn number(heading: &'static str, key: char, by: SortBy, show: fn(&Open) -> String) -> Column {
    Column { heading, key: Some((key, by)), show, is_text: false }
}

const fn text(heading: &'static str, key: Option<(char, SortBy)>, show: fn(&Open) -> String) -> Column {
    Column { heading, key, show, is_text: true }
}

/// The columns, in order.
pub static COLUMNS: [Column; 15] = [
    text("LOCAL", Some(('l', SortBy::Local)), |open| open.local.clone()),
    text("REMOTE", Some(('p', SortBy::Remote)), |open| open.remote.clone()),
    text("CC", Some(('c', SortBy::Cc)), |open| open.cc.clone()),
    number("GOODPUT", 'g', SortBy::Goodput, |open| or_dash(open.goodput_bps, short)),
    number("RATE", 'd', SortBy::Rate, |open| or_dash(open.delivery_rate_bps, |bps| short(bps as f64))),
    number("SRTT", 'r', SortBy::Srtt, |open| or_dash(open.srtt_us, time)),
    number("MINRTT", 'm', SortBy::MinRtt, |open| or_dash(open.min_rtt_us, time)),
    number("CWND", 'w', SortBy::Cwnd, |open| open.cwnd_packets.to_string()),
    number("ACKED", 'a', SortBy::Acked, |open| short(open.acked_bytes as f64)),
    number("RETRANS", 'x', SortBy::Retransmits, |open| open.retransmits.to_string()),
    number("RETRANS%", 's', SortBy::RetransmitRatio, |open| {
        or_dash(open.retransmit_ratio(), |ratio| format!("{:.2}", 100.0 * ratio))
    }),
    number("AGE", 't', SortBy::Age, |open| or_dash(open.age_us, age)),
    text("CPU", None, |open| or_dash(open.cpu_limited, cpu)),
    text("STATE", None, |open| open.state.clone()),
    text("CGROUP", None, |open| or_dash(open.cgroup.as_deref(), str::to_owned)),
];

fn cpu(is_limited: bool) -> String {
    String::from(if is_limited { "short" } else { "ok" })
}

fn or_dash<T>(value: Option<T>, show: impl FnOnce(T) -> String) -> String {
    value.map_or_else(|| "-".to_owned(), show)
}

/// Returns the heading and a line per connection.
pub fn lines(open: &OpenConnections) -> Vec<String> {
    let mut rows = vec![COLUMNS.iter().map(|column| column.heading.to_owned()).collect::<Vec<_>>()];
    rows.extend(
        open.connections.iter().map(|row| COLUMNS.iter().map(|column| harmless(&(column.show)(row))).collect()),
    );
    let width = |at: usize| rows.iter().map(|row: &Vec<String>| row[at].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..COLUMNS.len()).map(width).collect();
    let cell = |at: usize, text: &str| {
        let width = widths[at];
        if COLUMNS[at].is_text { format!("{text:<width$}") } else { format!("{text:>width$}") }
    };
    let line = |row: &Vec<String>| {
        let cells: Vec<String> = row.iter().enumerate().map(|(at, text)| cell(at, text)).collect();
        cells.join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}

/// Replaces blanks, which would break scripts, and control characters, which could control root's terminal.
/// Unprivileged users may choose cgroup names.
fn harmless(text: &str) -> String {
    text.replace(|letter: char| letter.is_control() || letter.is_whitespace(), "?")
}

/// Returns the heading of the column of a sort key.
pub fn heading(by: SortBy) -> &'static str {
    let sorts = |column: &&Column| column.key.is_some_and(|(_, order)| order == by);
    COLUMNS.iter().find(sorts).map_or("", |column| column.heading)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::show::fixture;
    use clap::ValueEnum;

    #[test]
    fn connection_columns_align_with_their_headings() {
        let open =
            OpenConnections { looked_us: 0, total: 2, connections: vec![fixture::download(), fixture::upload()] };
        let expected = "\
LOCAL             REMOTE                CC     GOODPUT   RATE    SRTT  MINRTT  CWND  ACKED  RETRANS  RETRANS%    AGE  CPU    STATE  CGROUP
192.0.2.1:443     198.51.100.23:50312   bbr      71.2M  73.0M  48.2ms  40.0ms   412   734M     1234      0.25  1m23s  short  ESTAB  /system.slice/nginx.service
[2001:db8::1]:22  [2001:db8::99]:40000  cubic        0      -   900us   212us    10  5.12k        0         -      -  -      ESTAB  -";
        assert_eq!(lines(&open).join("\n"), expected);
    }

    #[test]
    fn control_characters_in_a_cgroup_name_are_escaped() {
        let cgroup = Some("/a b\u{1b}]0;gotcha\u{7}\n".to_owned());
        let open =
            OpenConnections { connections: vec![Open { cgroup, ..fixture::upload() }], ..OpenConnections::default() };
        assert!(lines(&open)[1].ends_with("  /a?b?]0;gotcha??"), "{:?}", lines(&open));
    }

    #[test]
    fn every_sort_order_has_a_column_and_every_key_one_sort_order() {
        for by in SortBy::value_variants() {
            assert_ne!(heading(*by), "", "{by:?}");
        }
        let mut keys: Vec<char> = COLUMNS.iter().filter_map(|column| column.key).map(|(key, _)| key).collect();
        let all = keys.len();
        keys.sort_unstable();
        keys.dedup();
        assert_eq!((keys.len(), keys.contains(&'q')), (all, false));
    }
}
