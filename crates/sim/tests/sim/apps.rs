//! End-to-end tests of application metrics.

use crate::support::{self, of, run};
use thalweg_plan::plan::{App, Capacity, Experiment, Flow, Load, Step};
use thalweg_trace::FlowRow;
use thalweg_units::{Bytes, Rate, Span, Time};

const RTT: Span = Span::from_millis(40);

fn alone(app: App, rate: Rate) -> Experiment {
    let mut experiment = support::experiment();
    support::set_path(&mut experiment, rate, RTT, 1.0);
    experiment.duration_ns = Some(Span::from_secs(30));
    experiment.flows = vec![Flow::new("app", "cubic", Load::App { app })];
    experiment
}

fn video() -> App {
    App::Video {
        bitrates_bps: [1, 2, 4].map(Rate::from_mbps).to_vec(),
        segment_ns: Span::from_secs(2),
        buffer_ns: Span::from_secs(10),
    }
}

fn call() -> App {
    App::Call { frame_bytes: Bytes(6_250), interval_ns: Span(33_333_333), freeze_ns: Span::from_millis(150) }
}

fn completion_ms(rows: &[&FlowRow]) -> Vec<u64> {
    rows.iter().filter_map(|row| row.fct_us).map(|fct| fct / 1_000).collect()
}

#[test]
fn a_video_stalls_below_its_lowest_bitrate_and_not_above_its_highest_one() {
    let slow = run(&alone(video(), Rate(500_000)));
    let stalled: u64 = of(&slow, "app").iter().map(|row| row.stall_us.expect("it plays")).sum();
    // The path carries half of the bitrate, so the video plays for half of the time.
    assert!((12_000_000..16_000_000).contains(&stalled), "{stalled}");
    assert!(of(&slow, "app").iter().all(|row| row.bitrate_bps == Some(1_000_000)));

    let fast = run(&alone(video(), Rate::from_mbps(20)));
    let rows = of(&fast, "app");
    assert!(rows.iter().all(|row| row.stall_us == Some(0)), "{rows:?}");
    assert_eq!(rows.last().expect("segments").bitrate_bps, Some(4_000_000));
    let items: Vec<Option<u64>> = rows.iter().map(|row| row.item).collect();
    assert_eq!(items, (0..rows.len() as u64).map(Some).collect::<Vec<_>>());
}

#[test]
fn a_probe_on_an_idle_path_takes_one_rtt() {
    let app = App::Probe { size_bytes: Bytes(64), interval_ns: Span::from_millis(200) };
    let rows = run(&alone(app, Rate::from_mbps(10)));
    let probes = of(&rows, "app");
    assert_eq!(probes.len(), 151, "one every 200 ms, from 0 s to 30 s");
    let completion = completion_ms(&probes);
    assert_eq!(completion[0], 80, "the first one waits for the handshake");
    assert!(completion[1..].iter().all(|ms| (40..42).contains(ms)), "no ACK is delayed: {completion:?}");
    assert!(probes.iter().all(|row| row.stall_us.is_none()));
}

#[test]
fn frames_of_a_call_leave_on_time_and_share_no_segment_counts() {
    let rows = run(&alone(call(), Rate::from_mbps(10)));
    let frames = of(&rows, "app");
    assert!((899..=901).contains(&frames.len()), "{}", frames.len());
    let completion = completion_ms(&frames);
    assert!(completion[2..].iter().all(|ms| (40..60).contains(ms)), "{completion:?}");
    assert!(frames.iter().all(|row| row.stall_us == Some(0)));
    let segments: u64 = frames.iter().map(|row| row.segments).sum();
    let payload: u64 = frames.iter().map(|row| row.acked_bytes).sum();
    assert!(segments >= payload / 1_448 && segments <= 5 * frames.len() as u64, "{segments}");
}

#[test]
fn a_path_outage_freezes_a_call_once() {
    let mut experiment = alone(call(), Rate::from_mbps(10));
    add_outage(&mut experiment);
    let rows = run(&experiment);
    let stalls: Vec<u64> = of(&rows, "app").iter().filter_map(|row| row.stall_us).filter(|us| *us > 0).collect();
    assert!(!stalls.is_empty() && stalls.len() <= 2, "{stalls:?}");
    assert!((1_900_000..2_600_000).contains(&stalls.iter().sum::<u64>()), "{stalls:?}");
}

#[test]
fn rpcs_issued_during_a_path_outage_are_measured_from_their_arrival() {
    let app = App::Rpc { mean_gap_ns: Span::from_millis(10), sizes_bytes: vec![Bytes(1_000)], connections: 2 };
    let mut experiment = alone(app, Rate::from_mbps(10));
    add_outage(&mut experiment);
    let rows = run(&experiment);
    let completion = completion_ms(&of(&rows, "app"));
    // 100 messages arrive per second. Those of the first 1.5 s of the outage wait for more than half a second.
    let slow = completion.iter().filter(|ms| **ms > 500).count();
    assert!((110..260).contains(&slow), "{slow}");
    assert!(completion.len() > 2_500, "{}", completion.len());
    let connections = of(&rows, "app").iter().map(|row| row.connection).max();
    assert_eq!(connections, Some(1));
}

fn add_outage(experiment: &mut Experiment) {
    let step = |at: u64, rate_bps| Step { at_ns: Time(at * 1_000_000_000), rate_bps };
    let rate = Rate::from_mbps(10);
    experiment.forward.capacity = Capacity::Steps { steps: vec![step(0, rate), step(10, Rate::ZERO), step(12, rate)] };
}

#[test]
fn a_page_load_ends_with_its_last_object_and_objects_wait_for_their_parent() {
    let app = App::Web {
        objects: 20,
        depth: 3,
        sizes_bytes: vec![Bytes(2_000), Bytes(30_000)],
        connections: 4,
        pages: 2,
        think_ns: Span::from_secs(1),
    };
    let mut experiment = alone(app, Rate::from_mbps(20));
    experiment.duration_ns = None;
    let rows = run(&experiment);
    let objects = of(&rows, "app");
    assert_eq!(objects.len(), 40);
    assert!(objects.iter().all(|row| row.completed));
    assert_eq!(objects.iter().map(|row| row.connection).max(), Some(3));
    let page = |number| objects.iter().filter(move |row| row.item == Some(number));
    let document = page(0).min_by_key(|row| row.start_us).expect("a document");
    assert!(page(0).filter(|row| row.start_us != document.start_us).all(|row| row.start_us >= document.end_us));
    let first_ends = page(0).map(|row| row.end_us).max();
    assert_eq!(page(1).map(|row| row.start_us).min(), first_ends.map(|end| end + 1_000_000));
}

#[test]
fn a_stopped_application_leaves_rows_of_its_pending_requests() {
    let mut experiment = alone(call(), Rate(750_000));
    experiment.flows[0].stop_ns = Some(Time(5_000_000_000));
    experiment.duration_ns = None;
    let rows = run(&experiment);
    let frames = of(&rows, "app");
    assert_eq!(frames.len(), 151, "every frame until the stop has a row");
    let numbers: Vec<u64> = frames.iter().map(|row| row.transfer).collect();
    assert_eq!(numbers, (0..151).collect::<Vec<_>>());
    let completed = frames.iter().filter(|row| row.completed).count();
    assert!((60..90).contains(&completed), "half of them fit through: {completed}");
}
