//! The generator's measurements of itself.

use rustix::io::Errno;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use thalweg_trace::Histogram;
use thalweg_units::Span;

#[derive(Debug, Default)]
pub(super) struct Account {
    /// Number of connections that broke, or that could not be opened.
    pub(super) failed: u64,
    /// Number of transfers whose end was detected without the requested timestamp.
    pub(super) stamps_missing: u64,
    opened: u64,
    /// Lateness of connections, requests and messages at their start.
    lateness: Histogram,
    worst_lateness: Span,
    second_worst_lateness: Span,
    /// Number of connections that could not be opened, except timeouts, by destination and errno value.
    refused: BTreeMap<(SocketAddr, i32), u64>,
}

impl Account {
    /// Counts an opened connection with its lateness.
    pub(super) fn opened(&mut self, late: Span) {
        self.opened += 1;
        self.late(late);
    }

    /// Records the lateness of a request or message on an open connection.
    pub(super) fn late(&mut self, late: Span) {
        self.lateness.add(late);
        self.second_worst_lateness = self.second_worst_lateness.max(late.min(self.worst_lateness));
        self.worst_lateness = self.worst_lateness.max(late);
    }

    pub(super) fn not_opened(&mut self, to: SocketAddr, error: Errno) {
        self.failed += 1;
        // A path may lose every SYN, which is a valid result. Other errors are faults of the machine.
        if error != Errno::TIMEDOUT {
            *self.refused.entry((to, error.raw_os_error())).or_default() += 1;
        }
    }

    pub(super) fn measured(&self) -> BTreeMap<String, f64> {
        let measured = [
            ("connections_opened", Some(self.opened as f64)),
            ("connections_failed", Some(self.failed as f64)),
            ("ack_stamps_missing", Some(self.stamps_missing as f64)),
            ("start_lateness_p99_us", self.lateness.quantile_us(990)),
            ("start_lateness_max_us", Some(self.worst_lateness.0 as f64 / 1e3)),
        ];
        measured.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect()
    }

    /// Returns the reasons why the experiment is untrustworthy: connections that could not be opened, and lateness.
    ///
    /// Completion times are mostly relative to the actual start, so lateness alone does not change them. However,
    /// connections that should start apart may start together. That is reported if both the 99th percentile and the
    /// second-largest lateness exceed the larger of an RTT and 10 ms, because closer connections would share the path
    /// anyway. `off_cpu` is added to this limit: lateness while the scenario keeps the host off its CPU is intended.
    pub(super) fn doubts(&self, rtt: Span, off_cpu: Span) -> Vec<String> {
        let limit = rtt.max(Span::from_millis(10)) + off_cpu;
        let limit_us = limit.0 as f64 / 1e3;
        let may_bunch = self.second_worst_lateness > limit;
        let late = Some(&self.lateness)
            .filter(|_| may_bunch)
            .and_then(|lateness| lateness.quantile_us(990))
            .filter(|late| *late > limit_us)
            .map(|late| {
                format!(
                    "one connection or request in a hundred began at least {:.0} ms late; {:.0} ms is acceptable: open \
                 fewer of them per second, or run fewer programs at the same time",
                    late / 1e3,
                    limit_us / 1e3
                )
            });
        self.refusals().into_iter().chain(late).collect()
    }

    fn refusals(&self) -> Vec<String> {
        let sentence = |((to, error), count): (&(SocketAddr, i32), &u64)| {
            let error = Errno::from_raw_os_error(*error);
            format!("{count} connections to {to} could not be opened: {error}")
        };
        self.refused.iter().map(sentence).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refused_connections_are_reported_and_lost_ones_only_counted() {
        let (mut account, to) = (Account::default(), "10.77.0.2:5001".parse().unwrap());
        account.not_opened(to, Errno::TIMEDOUT);
        account.not_opened(to, Errno::CONNREFUSED);
        account.not_opened(to, Errno::CONNREFUSED);
        assert_eq!(account.measured()["connections_failed"], 3.0);
        let sentences = account.refusals();
        assert_eq!(sentences.len(), 1);
        assert!(sentences[0].starts_with("2 connections to 10.77.0.2:5001 could not be opened"), "{sentences:?}");
    }

    #[test]
    fn connections_opened_an_rtt_late_are_reported() {
        let mut account = Account::default();
        (0..100).for_each(|_| account.opened(Span::from_millis(30)));
        assert!(account.doubts(Span::from_millis(40), Span::ZERO).is_empty());
        assert!(account.doubts(Span::from_millis(20), Span::from_millis(15)).is_empty());
        let doubts = account.doubts(Span::from_millis(20), Span::ZERO);
        assert!(matches!(&doubts[..], [only] if only.contains("30 ms late") && only.contains("20 ms")), "{doubts:?}");
    }

    #[test]
    fn a_single_late_connection_is_not_reported() {
        let mut account = Account::default();
        account.opened(Span::from_millis(30));
        account.opened(Span::from_millis(1));
        assert!(account.doubts(Span::ZERO, Span::ZERO).is_empty());
        account.opened(Span::from_millis(30));
        assert_eq!(account.doubts(Span::ZERO, Span::ZERO).len(), 1);
    }
}
