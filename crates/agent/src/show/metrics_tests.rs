use super::*;
use crate::show::fixture;
use crate::show::tally::Tally;
use std::collections::BTreeSet;
use std::sync::Arc;
use thalweg_trace::RecordRow;

/// Returns the value of one sample in a scrape.
fn sample(page: &str, name: &str) -> Option<f64> {
    let line = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.map(|value| value.parse().unwrap())
}

fn close() -> RecordRow {
    RecordRow {
        kind: "close",
        cc: Some("bbr".into()),
        close: Some("remote_fin"),
        sent_bytes: Some(1_010_000),
        acked_bytes: Some(1_000_000),
        received_bytes: Some(300),
        retransmitted_bytes: Some(10_000),
        segments: Some(700),
        retransmits: Some(7),
        rtt_min_us: Some(40_000),
        rtt_smoothed_us: Some(90_000),
        cpu_limited: Some(true),
        ..RecordRow::default()
    }
}

fn transfer() -> RecordRow {
    RecordRow {
        kind: "transfer",
        transfer: Some(0),
        cc: Some("bbr".into()),
        acked_bytes: Some(1_000_000),
        fct_us: Some(400_000),
        goodput_bps: Some(20e6),
        ..RecordRow::default()
    }
}

fn page(rows: &[RecordRow]) -> String {
    let metrics = Arc::new(Metrics::new());
    let mut tally = Tally::new(Arc::clone(&metrics));
    // Published rows are not published a second time.
    rows.iter().for_each(|row| {
        tally.take(row);
        tally.publish();
    });
    tally.publish();
    metrics.render(&fixture::agent().snapshot, Vec::new())
}

#[test]
fn a_closed_connection_counts_by_algorithm_and_by_how_it_closed() {
    let page = page(&[close(), close()]);
    let value = |name: &str| sample(&page, name);
    assert_eq!(value("thalweg_connections_closed_total{cc=\"bbr\",close=\"remote_fin\"}"), Some(2.0));
    assert_eq!(value("thalweg_connections_cpu_limited_total{cc=\"bbr\"}"), Some(2.0));
    assert_eq!(value("thalweg_sent_bytes_total{cc=\"bbr\"}"), Some(2_020_000.0));
    assert_eq!(value("thalweg_retransmitted_bytes_total{cc=\"bbr\"}"), Some(20_000.0));
    assert_eq!(value("thalweg_connection_rtt_min_seconds_bucket{cc=\"bbr\",le=\"0.02\"}"), Some(0.0));
    assert_eq!(value("thalweg_connection_rtt_min_seconds_bucket{cc=\"bbr\",le=\"0.05\"}"), Some(2.0));
    assert_eq!(value("thalweg_connection_rtt_smoothed_seconds_sum{cc=\"bbr\"}"), Some(0.18));
    assert_eq!(value("thalweg_connection_retransmit_ratio_bucket{cc=\"bbr\",le=\"0.01\"}"), Some(2.0));
    assert_eq!(value("thalweg_connection_retransmit_ratio_bucket{cc=\"bbr\",le=\"0.003\"}"), Some(0.0));
}

#[test]
fn a_transfer_counts_in_its_size_and_in_bytes_per_second() {
    let page = page(&[transfer()]);
    let value = |name: &str| sample(&page, name);
    let labels = "cc=\"bbr\",size=\"1MB-10MB\"";
    assert_eq!(value(&format!("thalweg_transfer_duration_seconds_sum{{{labels}}}")), Some(0.4));
    assert_eq!(value(&format!("thalweg_transfer_goodput_bytes_per_second_sum{{{labels}}}")), Some(2.5e6));
    assert_eq!(value("thalweg_transfer_size_bytes_count{cc=\"bbr\"}"), Some(1.0));
    assert_eq!(value("thalweg_connections_closed_total{cc=\"bbr\",close=\"remote_fin\"}"), None);
}

#[test]
fn unknown_values_of_a_row_are_not_counted() {
    let idle = RecordRow { segments: Some(0), retransmits: Some(0), rtt_min_us: None, cpu_limited: None, ..close() };
    let unfinished = RecordRow { fct_us: None, goodput_bps: None, ..transfer() };
    let page = page(&[idle, unfinished, RecordRow { kind: "interim", ..close() }]);
    assert_eq!(sample(&page, "thalweg_connection_retransmit_ratio_count{cc=\"bbr\"}"), None);
    assert_eq!(sample(&page, "thalweg_connection_rtt_min_seconds_count{cc=\"bbr\"}"), None);
    assert_eq!(sample(&page, "thalweg_connections_cpu_limited_total{cc=\"bbr\"}"), Some(0.0));
    assert_eq!(sample(&page, "thalweg_connections_closed_total{cc=\"bbr\",close=\"remote_fin\"}"), Some(1.0));
    assert!(!page.contains("thalweg_transfer_duration_seconds"), "{page}");
}

#[test]
fn a_ratio_of_zero_has_a_separate_bucket() {
    let clean = RecordRow { retransmits: Some(0), ..close() };
    let page = page(&[clean, close()]);
    assert_eq!(sample(&page, "thalweg_connection_retransmit_ratio_bucket{cc=\"bbr\",le=\"0\"}"), Some(1.0));
}

#[test]
fn the_state_of_recording_is_exported() {
    let mut agent = fixture::agent().snapshot;
    let page = Metrics::new().render(&agent, Vec::new());
    let value = |name: &str| sample(&page, name);
    assert_eq!(value("thalweg_connections_open"), Some(79.0));
    assert_eq!(value("thalweg_rows_total{kind=\"transfer\"}"), Some(3_300_100.0));
    assert_eq!(value("thalweg_lost_events_total"), Some(0.0));
    assert_eq!(value("thalweg_write_failing"), Some(0.0));
    assert_eq!(value("process_cpu_seconds_total"), Some(61.25));
    assert_eq!(value("thalweg_ebpf_run_seconds_total{program=\"record_sockops\"}"), Some(0.17));
    assert_eq!(value("thalweg_info{kernel=\"6.18.5\",version=\"0.1.0\"}"), Some(1.0));

    agent.counters.lost_events = 3;
    agent.writer.trouble = Some("no space left on device".to_owned());
    agent.programs.clear();
    let page = Metrics::new().render(&agent, Vec::new());
    assert_eq!(sample(&page, "thalweg_lost_events_total"), Some(3.0));
    assert_eq!(sample(&page, "thalweg_write_failing"), Some(1.0));
    assert!(!page.contains("ebpf_runs"), "{page}");
}

#[test]
fn algorithms_are_counted_separately() {
    let other = RecordRow { cc: Some("cubic".into()), ..close() };
    let nameless = RecordRow { cc: None, close: None, ..close() };
    let page = page(&[close(), other.clone(), other, nameless]);
    let closed = |labels: &str| sample(&page, &format!("thalweg_connections_closed_total{{{labels}}}"));
    assert_eq!(closed("cc=\"bbr\",close=\"remote_fin\""), Some(1.0));
    assert_eq!(closed("cc=\"cubic\",close=\"remote_fin\""), Some(2.0));
    assert_eq!(closed("cc=\"unknown\",close=\"unknown\""), Some(1.0));
}

#[test]
fn bucket_bounds_are_round_numbers() {
    assert_eq!(steps(-4, -3), [0.0001, 0.0002, 0.0005, 0.001]);
}

#[test]
fn the_reference_page_names_every_metric_and_no_other() {
    let page = page(&[close(), transfer()]);
    let name = |line: &str| line.strip_prefix("# TYPE ")?.split(' ').next().map(str::to_owned);
    let exported: BTreeSet<String> = page.lines().filter_map(name).collect();
    let reference = include_str!("../../../../docs/reference/agent.md");
    let (_, section) = reference.split_once("\n## Metrics\n").expect("a section on metrics");
    let (section, _) = section.split_once("\n## ").expect("another section");
    let is_metric = |word: &&str| {
        (word.starts_with("thalweg_") || word.starts_with("process_")) && !word.starts_with("thalweg_tune_")
    };
    let documented: BTreeSet<String> = section.split('`').filter(is_metric).map(str::to_owned).collect();
    assert_eq!(exported, documented);
}
