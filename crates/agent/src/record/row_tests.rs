use super::*;
use crate::flow::cgroups::Paths;
use crate::flow::measures::AF_INET;

const JIFFY_NS: u64 = 4_000_000;

/// Returns a row builder for a machine that is never off CPU.
fn row_builder(addresses: Addresses) -> RowBuilder {
    assembler_with(addresses, OffCpu::with_share(0.0))
}

fn assembler_with(addresses: Addresses, off_cpu: OffCpu) -> RowBuilder {
    RowBuilder::new(
        addresses,
        1,
        JIFFY_NS,
        Paths::new("/sys/fs/cgroup/missing".into()),
        Arc::new(off_cpu),
        &["cubic".into(), "bbr".into()],
    )
}

fn row(event: &RecordEvent) -> RecordRow {
    row_builder(Addresses::Whole).row(event, &Clock::now(), false)
}

fn words(text: &str) -> [u64; 2] {
    let mut bytes = [0u8; 16];
    bytes[..text.len()].copy_from_slice(text.as_bytes());
    [0, 1].map(|word| u64::from_ne_bytes(bytes[8 * word..8 * word + 8].try_into().unwrap()))
}

fn ip(bytes: &[u8]) -> [u64; 2] {
    let mut all = [0u8; 16];
    all[..bytes.len()].copy_from_slice(bytes);
    [0, 1].map(|word| u64::from_ne_bytes(all[8 * word..8 * word + 8].try_into().unwrap()))
}

/// Returns the close of a connection in which 192.0.2.1:443 served 198.51.100.7:50000 for two seconds.
fn close() -> RecordEvent {
    RecordEvent {
        kind: Kind::Close as u32,
        connection: 77,
        start_us: 1_000_000,
        end_us: 3_000_000,
        family: AF_INET,
        local_address: ip(&[192, 0, 2, 1]),
        local_port: 443,
        remote_address: ip(&[198, 51, 100, 7]),
        remote_port: 50_000,
        state: state::LAST_ACK,
        cc_at_open: words("cubic"),
        cc: words("bbr"),
        sent_bytes: 1_000_000,
        acked_bytes: 1_000_000,
        busy_jiffies: 250,
        rtt_min_us: 20_000,
        rtt_max_us: 50_000,
        rtt_smoothed_us: 30_000,
        rtt_samples: 40,
        app_limited_samples: 10,
        mss_bytes: 1_448,
        rate_packets: 100,
        rate_interval_us: 20_000,
        marks: 1,
        acked_after_bytes: [600_000, 0, 0, 0],
        ..RecordEvent::default()
    }
}

#[test]
fn a_row_of_a_closed_connection_has_the_derived_columns() {
    let row = row(&close());
    assert_eq!((row.kind, row.transfer, row.close, row.direction), ("close", None, Some("remote_fin"), Some("in")));
    assert_eq!((row.duration_us, row.end_us - row.start_us.unwrap()), (Some(2_000_000), 2_000_000));
    assert_eq!((row.local_address.as_deref(), row.local_port), (Some("192.0.2.1"), Some(443)));
    assert_eq!((row.remote_address.as_deref(), row.remote_port), (Some("198.51.100.7"), Some(50_000)));
    assert_eq!((row.cc_at_open.as_deref(), row.cc.as_deref()), (Some("cubic"), Some("bbr")));
    // 250 jiffies of 4 ms are one second, in which 8 Mbit were acknowledged.
    assert_eq!((row.busy_us, row.busy_goodput_bps), (Some(1_000_000), Some(8e6)));
    assert_eq!((row.buffer_bdp, row.app_limited_share), (Some(1.5), Some(0.25)));
    // 100 x 1448 x 8 bits in 20 ms.
    assert_eq!((row.delivery_rate_bps, row.delivery_rate_max_bps), (Some(57_920_000), None));
    assert_eq!((row.acked_1s_bytes, row.acked_3s_bytes), (Some(600_000), None));
    assert_eq!((row.fct_us, row.goodput_bps), (None, None), "a connection has no completion time");
}

#[test]
fn the_close_reason_follows_from_the_socket_error_and_the_last_state() {
    const ESTABLISHED: u32 = 1;
    for (error, state, expected) in [
        (0, state::LAST_ACK, "remote_fin"),
        (0, state::FIN_WAIT2, "local_fin"),
        (0, state::CLOSING, "local_fin"),
        (0, ESTABLISHED, "local_reset"),
        (103, ESTABLISHED, "local_reset"),
        (104, ESTABLISHED, "remote_reset"),
        (104, state::FIN_WAIT2, "remote_reset"),
        (32, 8, "remote_reset"),
        (110, ESTABLISHED, "timeout"),
        (110, state::LAST_ACK, "timeout"),
        (113, ESTABLISHED, "timeout"),
    ] {
        assert_eq!(row(&RecordEvent { error, state, ..close() }).close, Some(expected), "{error} {state}");
    }
    assert_eq!(row(&RecordEvent { kind: Kind::Interim as u32, ..close() }).close, None);
    let untracked =
        row_builder(Addresses::Whole).row(&RecordEvent { kind: Kind::Snapshot as u32, ..close() }, &Clock::now(), true);
    assert_eq!((untracked.kind, untracked.close), ("close", Some("unseen")));
}

/// Returns a transfer of 100 kB in 80 ms.
fn transfer() -> RecordEvent {
    RecordEvent {
        kind: Kind::Transfer as u32,
        flags: flag::COMPLETE,
        transfer: 3,
        start_us: 1_000_000,
        end_us: 1_080_000,
        acked_bytes: 100_000,
        rtt_samples: 4,
        app_limited_samples: 1,
        ..close()
    }
}

#[test]
fn a_transfer_has_a_completion_time_if_it_ended_and_was_limited_by_the_network() {
    let done = row(&transfer());
    assert_eq!((done.kind, done.transfer), ("transfer", Some(3)));
    assert_eq!((done.fct_us, done.goodput_bps), (Some(80_000), Some(10e6)));
    assert_eq!((done.received_bytes, done.mss_bytes), (None, None), "of a connection, not of a transfer");
    let paced = row(&RecordEvent { app_limited_samples: 2, ..transfer() });
    assert_eq!((paced.fct_us, paced.duration_us), (None, Some(80_000)));
    let cut_off = row(&RecordEvent { flags: 0, ..transfer() });
    assert_eq!((cut_off.fct_us, cut_off.goodput_bps), (None, None));
    let of_unknown_begin = row(&RecordEvent { start_us: 0, ..transfer() });
    assert_eq!((of_unknown_begin.fct_us, of_unknown_begin.start_us), (None, None));
    // One app-limited round after the first does not suffice: the end of a small object is always app-limited.
    assert!(row(&RecordEvent { rtt_samples: 2, app_limited_samples: 1, ..transfer() }).fct_us.is_some());
}

#[test]
fn addresses_and_ports_are_recorded_as_configured() {
    let truncated = |event: &RecordEvent| row_builder(Addresses::Truncated).row(event, &Clock::now(), false);
    let incoming = truncated(&close());
    assert_eq!((incoming.remote_address.as_deref(), incoming.remote_port), (Some("198.51.100.0/24"), None));
    let outgoing = truncated(&RecordEvent { flags: flag::OUTGOING, ..close() });
    assert_eq!((outgoing.direction, outgoing.remote_port), (Some("out"), Some(50_000)));
}

#[test]
fn ipv4_mapped_addresses_are_recorded_as_ipv4() {
    let mapped = |last: u8| ip(&[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 192, 0, 2, last]);
    let event = RecordEvent { family: 10, local_address: mapped(1), remote_address: mapped(2), ..close() };
    let row_of_event = row(&event);
    assert_eq!((row_of_event.ip_version, row_of_event.remote_address.as_deref()), (Some(4), Some("192.0.2.2")));
    let real = ip(&[0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
    let row_of_event = row(&RecordEvent { family: 10, local_address: real, remote_address: real, ..close() });
    assert_eq!((row_of_event.ip_version, row_of_event.local_address.as_deref()), (Some(6), Some("2001:db8::1")));
}

#[test]
fn unknown_columns_of_a_connection_opened_before_recording_are_empty() {
    let joined = RecordEvent {
        kind: Kind::Interim as u32,
        flags: flag::JOINED | flag::BLIND,
        cc_at_open: [0; 2],
        rtt_samples: 0,
        rtt_max_us: 0,
        rtt_min_us: u32::MAX,
        marks: 4,
        ..close()
    };
    let row = row(&joined);
    assert_eq!((row.joined, row.direction, row.cc_at_open), (Some(true), None, None));
    assert_eq!((row.rtt_min_us, row.rtt_max_us, row.rtt_p95_us, row.buffer_bdp), (None, None, None, None));
    assert_eq!((row.app_limited_share, row.acked_1s_bytes, row.acked_30s_bytes), (None, None, None));
    assert_eq!(row.acked_bytes, Some(1_000_000), "the kernel counts from the opening");
}

/// Returns a BBR connection with too little in flight in all samples.
fn bbr() -> RecordEvent {
    // The bandwidth is one packet in 100 us, rounded down by less than 2^-24 packets per us.
    RecordEvent { bbr_bw: (1 << 24) / 100, bbr_min_rtt_us: 20_000, bbr_samples: 10, bbr_short_samples: 10, ..close() }
}

#[test]
fn bbr_state_is_recorded_for_bbr_connections() {
    let bbr_row = row(&bbr());
    assert!(bbr_row.bbr_bw_bps.unwrap().abs_diff(115_840_000) < 1_000, "{:?}", bbr_row.bbr_bw_bps);
    assert_eq!(bbr_row.bbr_min_rtt_us, Some(20_000));
    assert_eq!(row(&RecordEvent { bbr_min_rtt_us: u32::MAX, ..bbr() }).bbr_min_rtt_us, None);
    let other = row(&close());
    assert_eq!((other.bbr_bw_bps, other.bbr_min_rtt_us, other.cpu_limited), (None, None, None));
}

#[test]
fn bbr_is_reported_short_of_cpu_if_its_machine_was_off_cpu() {
    let judged = |event: &RecordEvent, off_cpu| {
        assembler_with(Addresses::Whole, OffCpu::with_share(off_cpu)).row(event, &Clock::now(), false).cpu_limited
    };
    assert_eq!(judged(&bbr(), 0.0), Some(false), "on a machine of its own little is in flight for other reasons");
    assert_eq!((judged(&bbr(), 0.04), judged(&bbr(), 0.06)), (Some(false), Some(true)));
    // BBR with a collapsed bandwidth estimate takes the small amount in flight for a BDP.
    let full = RecordEvent { bbr_short_samples: 4, ..bbr() };
    assert_eq!((judged(&full, 0.15), judged(&full, 0.25)), (Some(false), Some(true)));
    assert_eq!(judged(&RecordEvent { rwnd_limited_jiffies: 126, ..bbr() }, 0.5), Some(false), "its peer held it back");
    assert_eq!(judged(&RecordEvent { bbr_samples: 9, ..bbr() }, 0.5), None);
    assert_eq!(judged(&RecordEvent { start_us: 2_900_000, ..bbr() }, 0.5), None, "too short to tell");
    assert_eq!(judged(&close(), 0.5), None, "another algorithm");
}

#[test]
fn the_95th_percentile_of_few_rtt_samples_is_the_largest() {
    let mut event = RecordEvent { rtt_samples: 19, ..close() };
    assert_eq!(row(&event).rtt_p95_us, Some(50_000));
    // All samples are in the bucket around 30 ms.
    event.rtt_histogram[9] = u64::from_ne_bytes([0, 0, 0, 0, 0, 0, 20, 0]);
    event.rtt_samples = 20;
    let p95_us = row(&event).rtt_p95_us.unwrap();
    assert!((28_000..32_000).contains(&p95_us), "{p95_us}");
}

#[test]
fn an_unreported_close_produces_a_row_from_the_stored_state() {
    let unreported = RecordEvent {
        kind: Kind::Gone as u32,
        family: 0,
        cc: [0; 2],
        state: 0,
        mss_bytes: 0,
        rtt_smoothed_us: 0,
        rate_packets: 0,
        rate_max_packets: 10,
        rate_max_interval_us: 100,
        ..close()
    };
    let row = row_builder(Addresses::Whole).row(&unreported, &Clock::now(), true);
    assert_eq!((row.kind, row.close, row.duration_us), ("close", Some("unseen"), Some(2_000_000)));
    assert_eq!(
        (row.acked_bytes, row.cc_at_open.as_deref(), row.direction),
        (Some(1_000_000), Some("cubic"), Some("in"))
    );
    assert_eq!((row.ip_version, row.local_address, row.local_port), (None, None, None));
    assert_eq!((row.remote_address, row.remote_port, row.cgroup), (None, None, None));
    assert_eq!((row.received_bytes, row.mss_bytes, row.delivery_rate_max_bps, row.ecn), (None, None, None, None));
}
