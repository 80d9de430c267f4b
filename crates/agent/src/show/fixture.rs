//! A fake agent for tests.

use super::observable::Observable;
use super::snapshot::{Counters, Open, OpenConnections, Program, Snapshot, Usage, Writer};
use super::sorting::Selection;

/// Answers requests with a fixed state.
pub struct FixtureAgent {
    /// The status.
    pub snapshot: Snapshot,
    /// The open connections.
    pub open: Vec<Open>,
}

impl Observable for FixtureAgent {
    fn status(&self) -> Snapshot {
        self.snapshot.clone()
    }

    fn open(&self, selection: &Selection) -> OpenConnections {
        OpenConnections {
            looked_us: self.snapshot.now_us,
            total: self.open.len() as u64,
            connections: selection.pick(self.open.iter().cloned()),
        }
    }
}

/// Returns an agent that has recorded for 27 hours.
pub fn agent() -> FixtureAgent {
    let counters = Counters {
        opened: 1_234_567,
        joined: 12,
        closed: 1_234_500,
        unsampled: 0,
        close_rows: 1_234_500,
        interim_rows: 204,
        transfer_rows: 3_300_100,
        lost_events: 0,
        lost_connections: 0,
        clock_steps: 0,
        reattached: 0,
    };
    let writer =
        Writer { rows_written: 4_534_000, rows_waiting: 804, files: 57, bytes: 1_234_567_890, ..Writer::default() };
    let snapshot = Snapshot {
        version: "0.1.0".to_owned(),
        pid: 4242,
        kernel: "6.18.5".to_owned(),
        since_us: 1_700_000_000_000_000,
        now_us: 1_700_097_260_000_000,
        cgroup: "/sys/fs/cgroup".to_owned(),
        sampled_one_in: 1,
        addresses: "truncated".to_owned(),
        out: "/var/lib/thalweg/records".to_owned(),
        listen: Some("127.0.0.1:9477".to_owned()),
        connections_open: 79,
        away_percent: Some(0.4),
        not_attached: None,
        reload_trouble: None,
        counters,
        writer,
        usage: Usage { process_bytes: 8_100_000, cpu_us: 61_250_000, maps_bytes: Some(12_345_678) },
        programs: vec![Program { name: "record_sockops".to_owned(), runs: 2_000_000, run_ns: 170_000_000 }],
    };
    FixtureAgent { snapshot, open: vec![download(), upload()] }
}

/// Returns a fast connection with loss.
pub fn download() -> Open {
    Open {
        connection: 7,
        local: "192.0.2.1:443".to_owned(),
        remote: "198.51.100.23:50312".to_owned(),
        cc: "bbr".to_owned(),
        state: "ESTAB".to_owned(),
        netns: 4_026_531_840,
        cgroup: Some("/system.slice/nginx.service".to_owned()),
        age_us: Some(83_000_000),
        acked_bytes: 734_003_200,
        received_bytes: 812,
        goodput_bps: Some(71_234_567.0),
        srtt_us: Some(48_210),
        min_rtt_us: Some(40_002),
        cwnd_packets: 412,
        segments: 500_000,
        retransmits: 1_234,
        delivery_rate_bps: Some(73_000_000),
        cpu_limited: Some(true),
    }
}

/// Returns an idle connection that was open before recording began.
pub fn upload() -> Open {
    Open {
        connection: 3,
        local: "[2001:db8::1]:22".to_owned(),
        remote: "[2001:db8::99]:40000".to_owned(),
        cc: "cubic".to_owned(),
        state: "ESTAB".to_owned(),
        netns: 4_026_531_840,
        cgroup: None,
        age_us: None,
        acked_bytes: 5_120,
        received_bytes: 88_000_000,
        goodput_bps: Some(0.0),
        srtt_us: Some(900),
        min_rtt_us: Some(212),
        cwnd_packets: 10,
        segments: 0,
        retransmits: 0,
        delivery_rate_bps: None,
        cpu_limited: None,
    }
}
