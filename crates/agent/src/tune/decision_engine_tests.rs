use super::*;
use crate::tune::arms::Offer;
use crate::tune::fake_kernel::FakeKernel;
use crate::tune::kernel::Override;
use crate::tune::options::Options;
use clap::Parser;
use thalweg_policy::Group;
use thalweg_units::{Bytes, Packets, Rate, Span};

pub const OWN: u32 = 7;
const CUBIC: ArmId = ArmId(0);
const BBR: ArmId = ArmId(1);

/// A command line of `tune`.
#[derive(Parser)]
pub struct Line {
    #[command(flatten)]
    pub options: Options,
}

pub fn setup(arguments: &[&str], config: &str) -> Result<Setup, Problem> {
    with_options(arguments, config, Setup::new)
}

/// Returns the available, allowed and default algorithms of a machine.
pub fn offer() -> Offer {
    let names = |text: &str| text.split(' ').map(str::to_owned).collect();
    Offer { available: names("reno cubic bbr dctcp"), allowed: names("cubic bbr dctcp"), default: "cubic".to_owned() }
}

/// Calls `work` with the options of a command line and a configuration file, and with [`offer`].
pub fn with_options<T>(arguments: &[&str], config: &str, work: impl FnOnce(&Options, &Offer) -> T) -> T {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tune.toml");
    std::fs::write(&file, config).unwrap();
    let file = file.display().to_string();
    let line = ["tune", "--config", &file].into_iter().chain(arguments.iter().copied());
    work(&Line::parse_from(line).options, &offer())
}

pub fn engine(arguments: &[&str], config: &str) -> DecisionEngine {
    let default_of = |netns: u32| match netns {
        OWN => Some("cubic".to_owned()),
        8 => Some("bbr".to_owned()),
        9 => Some("reno".to_owned()),
        _ => None,
    };
    DecisionEngine::new(setup(arguments, config).unwrap(), OWN, Box::new(default_of))
}

pub fn at(seconds: f64) -> Time {
    Time(1_700_000_000_000_000_000 + (seconds * 1e9) as u64)
}

pub fn prefix(text: &str) -> Prefix {
    text.parse().unwrap()
}

/// Returns the outcome of a transfer of 300 kB with this completion time.
pub fn outcome(to: &str, arm: ArmId, group: Group, ms: f64) -> Outcome {
    let span = Span((ms * 1e6) as u64);
    Outcome {
        prefix: prefix(to),
        arm,
        group,
        direction: Direction::In,
        acked: Bytes(300_000),
        completion: Some(span),
        busy: span,
        is_app_limited: false,
        is_cpu_limited: false,
        segments: Packets(208),
        retransmits: Packets(2),
        rtt_min: Some(Span::from_millis(20)),
        rtt_max: Some(Span::from_millis(40)),
        delivery_rate: Some(Rate::of(Bytes(300_000), span)),
    }
}

fn row<'a>(kernel: &'a FakeKernel, to: &str) -> Option<&'a Row> {
    kernel.rows.get(&RowKey { netns: OWN, prefix: prefix(to) })
}

/// Returns BBR's probability for destinations without a row.
fn bbr_elsewhere(kernel: &FakeKernel) -> f64 {
    kernel.netns_rows[&OWN].incoming.probability(BBR)
}

/// Reports `n` connections, a third of them held out, and calls `tick`. `ms` has the shortest completion times of CUBIC
/// and of BBR.
pub fn learn(engine: &mut DecisionEngine, kernel: &mut FakeKernel, to: &str, n: u64, ms: [f64; 2]) {
    for number in 0..n {
        let (arm, group) = if number % 3 == 0 { (CUBIC, Group::HeldOut) } else { (BBR, Group::Treated) };
        let ms = ms[arm.index()] * (1.0 + 0.1 * (number % 5) as f64);
        engine.observe(OWN, &outcome(to, arm, group, ms), at(number as f64));
    }
    engine.tick(at(n as f64), None, kernel);
}

#[test]
fn outcomes_of_a_destination_update_its_row_at_the_next_tick() {
    let (mut engine, mut kernel) = (engine(&[], ""), FakeKernel::default());
    engine.begin(at(0.0), &mut kernel).unwrap();
    assert!(row(&kernel, "192.0.2.0/24").is_none());
    assert_eq!(kernel.netns_rows[&OWN].incoming.holdout(), 0.05);
    learn(&mut engine, &mut kernel, "192.0.2.0/24", 30, [400.0, 100.0]);
    let weights = &row(&kernel, "192.0.2.0/24").unwrap().incoming;
    assert!(weights.probability(BBR) > 0.9, "{weights:?}");
    assert!((0.01..=0.05).contains(&weights.holdout()), "{weights:?}");
}

#[test]
fn destinations_without_a_network_around_them_have_rows_of_their_own() {
    let (mut engine, mut kernel) = (engine(&[], "[tree]\nv4 = 8\n"), FakeKernel::default());
    engine.begin(at(0.0), &mut kernel).unwrap();
    learn(&mut engine, &mut kernel, "192.0.0.0/8", 30, [400.0, 100.0]);
    let share = row(&kernel, "192.0.0.0/8").unwrap().incoming.probability(BBR);
    assert!(share > 0.9 && share > bbr_elsewhere(&kernel), "{share} {}", bbr_elsewhere(&kernel));
}

#[test]
fn the_row_of_a_network_without_unseen_destinations_is_none() {
    let (mut engine, mut kernel) = (engine(&[], "[tree]\nv4 = 17\n"), FakeKernel::default());
    engine.begin(at(0.0), &mut kernel).unwrap();
    let network = |engine: &DecisionEngine| {
        let guard = engine.namespaces[&OWN].guard.as_ref().unwrap();
        engine.representative(guard, prefix("198.51.0.0/16")).map(|leaf| leaf.to_string())
    };
    learn(&mut engine, &mut kernel, "198.51.128.0/17", 3, [400.0, 100.0]);
    assert_eq!(network(&engine).as_deref(), Some("198.51.0.0/17"));
    learn(&mut engine, &mut kernel, "198.51.0.0/17", 3, [400.0, 100.0]);
    assert_eq!(network(&engine), None, "a destination of a neighbouring network does not stand for it");
}

#[test]
fn learning_starts_over_in_a_namespace_whose_default_changes() {
    let (mut engine, mut kernel) = (engine(&[], ""), FakeKernel::default());
    engine.begin(at(0.0), &mut kernel).unwrap();
    learn(&mut engine, &mut kernel, "192.0.2.0/24", 30, [400.0, 100.0]);
    let outcome_of_8 = outcome("198.51.100.0/24", BBR, Group::HeldOut, 100.0);
    engine.observe(8, &outcome_of_8, at(35.0));
    let mut follow = |default_of_own: &str, default_of_8: &str, seconds: f64| {
        let defaults = BTreeMap::from([(OWN, default_of_own.to_owned()), (8, default_of_8.to_owned())]);
        engine.follow_defaults(&defaults, at(seconds));
        engine.tick(at(seconds + 1.0), None, &mut kernel);
        let default = |netns: u32| {
            let guard = engine.namespaces[&netns].guard.as_ref()?;
            Some(guard.arms().arm(guard.arms().default()).name.clone())
        };
        let has_row = |netns: u32, to: &str| kernel.rows.contains_key(&RowKey { netns, prefix: prefix(to) });
        (
            [has_row(OWN, "192.0.2.0/24"), has_row(8, "198.51.100.0/24")],
            [default(OWN), default(8)].map(Option::unwrap_or_default),
            kernel.netns_rows.contains_key(&8),
        )
    };
    let defaults = |own: &str, other: &str| [own.to_owned(), other.to_owned()];
    assert_eq!(follow("cubic", "bbr", 40.0), ([true, true], defaults("cubic", "bbr"), true), "both are the same");
    assert_eq!(follow("cubic", "cubic", 50.0), ([true, false], defaults("cubic", "cubic"), true));
    assert_eq!(follow("bbr", "cubic", 60.0), ([false, false], defaults("bbr", "cubic"), true));
    assert_eq!(follow("bbr", "reno", 70.0), ([false, false], defaults("bbr", ""), false), "reno is not an arm");
}

#[test]
fn removed_namespaces_make_room_for_new_ones() {
    let (mut engine, mut kernel) = (engine(&[], ""), FakeKernel::default());
    engine.begin(at(0.0), &mut kernel).unwrap();
    let named = |numbers: std::ops::Range<u32>| numbers.map(|number| (number, number.to_string())).collect();
    engine.scan_namespaces(named(1_000..1_000 + MAX_NAMESPACES as u32), at(1.0));
    assert_eq!(engine.namespaces.len(), MAX_NAMESPACES);
    engine.scan_namespaces(named(8..9), at(2.0));
    engine.tick(at(3.0), None, &mut kernel);
    assert!(kernel.netns_rows.contains_key(&8) && kernel.netns_rows.contains_key(&OWN), "{:?}", kernel.netns_rows);
}

#[test]
fn a_rejected_row_is_reported_until_it_is_written() {
    let (mut engine, mut kernel) = (engine(&[], ""), FakeKernel::default());
    engine.begin(at(0.0), &mut kernel).unwrap();
    kernel.is_full = true;
    learn(&mut engine, &mut kernel, "192.0.2.0/24", 30, [400.0, 100.0]);
    assert_eq!(engine.trouble(), Some("a row"));
    engine.tick(at(40.0), None, &mut kernel);
    assert_eq!(engine.trouble(), Some("a row"), "it is still rejected");
    kernel.is_full = false;
    engine.tick(at(43.0), None, &mut kernel);
    assert_eq!(engine.trouble(), None);
    assert!(row(&kernel, "192.0.2.0/24").is_some());
}

#[test]
fn new_destinations_inherit_from_their_neighbours_and_then_from_the_root() {
    let (mut engine, mut kernel) = (engine(&[], ""), FakeKernel::default());
    engine.begin(at(0.0), &mut kernel).unwrap();
    let before = bbr_elsewhere(&kernel);
    for third in 0..6 {
        learn(&mut engine, &mut kernel, &format!("203.0.{third}.0/24"), 30, [400.0, 100.0]);
    }
    let near = row(&kernel, "203.0.0.0/16").unwrap().incoming.probability(BBR);
    assert!(near > 0.8 && near > before + 0.2, "{near} {before}");
    assert!(bbr_elsewhere(&kernel) > before + 0.2, "{} {before}", bbr_elsewhere(&kernel));
    assert!(row(&kernel, "203.0.0.0/8").is_none(), "one level of networks has rows");
}

#[test]
fn namespaces_learn_separately_and_keep_their_own_default() {
    let (mut engine, mut kernel) = (engine(&[], ""), FakeKernel::default());
    engine.begin(at(0.0), &mut kernel).unwrap();
    learn(&mut engine, &mut kernel, "192.0.2.0/24", 30, [400.0, 100.0]);
    for number in 0..30 {
        let (arm, group) = if number % 3 == 0 { (BBR, Group::HeldOut) } else { (CUBIC, Group::Treated) };
        let ms = if arm == BBR { 400.0 } else { 100.0 };
        engine.observe(8, &outcome("192.0.2.0/24", arm, group, ms), at(f64::from(number)));
    }
    engine.tick(at(40.0), None, &mut kernel);
    let incoming = &kernel.rows[&RowKey { netns: 8, prefix: prefix("192.0.2.0/24") }].incoming;
    assert!(incoming.probability(CUBIC) > 0.9, "{incoming:?}");
    assert!(row(&kernel, "192.0.2.0/24").unwrap().incoming.probability(BBR) > 0.9);
}

#[test]
fn selection_is_inactive_if_the_default_is_unknown_or_not_an_arm() {
    for netns in [9, 10] {
        let (mut engine, mut kernel) = (engine(&[], ""), FakeKernel::default());
        engine.begin(at(0.0), &mut kernel).unwrap();
        engine.observe(netns, &outcome("192.0.2.0/24", BBR, Group::Treated, 100.0), at(1.0));
        engine.tick(at(2.0), None, &mut kernel);
        assert!(kernel.rows.is_empty());
        assert!(!kernel.netns_rows.contains_key(&netns), "without a row nothing is chosen");
    }
}

#[test]
fn stock_bbr_is_excluded_everywhere_while_the_host_is_short_of_cpu() {
    let (mut engine, mut kernel) = (engine(&[], ""), FakeKernel::default());
    engine.begin(at(0.0), &mut kernel).unwrap();
    learn(&mut engine, &mut kernel, "192.0.2.0/24", 30, [400.0, 100.0]);
    let share = |kernel: &FakeKernel| row(kernel, "192.0.2.0/24").unwrap().incoming.probability(BBR);
    engine.tick(at(40.0), Some(0.25), &mut kernel);
    assert_eq!((share(&kernel), bbr_elsewhere(&kernel)), (0.0, 0.0));
    engine.tick(at(41.0), Some(0.15), &mut kernel);
    assert_eq!(share(&kernel), 0.0, "between the two limits nothing changes");
    engine.tick(at(42.0), Some(0.05), &mut kernel);
    assert!(share(&kernel) > 0.9);
    let changes: Vec<Change> = engine.log.last(2).into_iter().map(|logged| logged.event.change).collect();
    assert_eq!(changes, [Change::CpuFree, Change::CpuLimited]);
}

#[test]
fn an_arm_that_cannot_be_set_is_excluded_and_reported() {
    let (mut engine, mut kernel) = (engine(&[], ""), FakeKernel::default());
    engine.begin(at(0.0), &mut kernel).unwrap();
    learn(&mut engine, &mut kernel, "192.0.2.0/24", 30, [400.0, 100.0]);
    kernel.decisions = [((Reason::Refused, Some(BBR)), 1)].into();
    engine.tick(at(40.0), None, &mut kernel);
    engine.tick(at(41.0), None, &mut kernel);
    assert_eq!(row(&kernel, "192.0.2.0/24").unwrap().incoming.probability(CUBIC), 1.0);
    assert_eq!(bbr_elsewhere(&kernel), 0.0);
    let lines = engine.log.take_lines();
    assert_eq!(lines.iter().filter(|(_, line)| line.starts_with("excludes bbr: ")).count(), 1, "{lines:?}");
}

#[test]
fn harm_restores_the_default_on_the_whole_network_for_a_limited_time() {
    let arguments = ["--policy", "static", "--holdout", "0.5"];
    let (mut engine, mut kernel) =
        (engine(&arguments, "[static]\nbbr = 1\n[guard]\nwithdraw_for = \"1h\"\n"), FakeKernel::default());
    engine.begin(at(0.0), &mut kernel).unwrap();
    learn(&mut engine, &mut kernel, "192.0.2.0/24", 2, [100.0, 400.0]);
    learn(&mut engine, &mut kernel, "203.0.113.0/24", 600, [100.0, 400.0]);
    let share = |kernel: &FakeKernel, to: &str| row(kernel, to).unwrap().incoming.probability(BBR);
    assert_eq!(share(&kernel, "203.0.113.0/24"), 0.0);
    assert_eq!(share(&kernel, "192.0.2.0/24"), 0.0, "the test is that of all destinations");
    assert_eq!(bbr_elsewhere(&kernel), 0.0);
    assert!(engine.log.last(usize::MAX).iter().any(|logged| matches!(logged.event.change, Change::Withdrawn { .. })));
    // Time passes without connections.
    (0..5).for_each(|second| engine.tick(at(10_000.0 + f64::from(second)), None, &mut kernel));
    assert_eq!(share(&kernel, "192.0.2.0/24"), 1.0);
    assert_eq!(bbr_elsewhere(&kernel), 1.0);
}

#[test]
fn rows_of_evicted_destinations_are_deleted() {
    let (mut engine, mut kernel) = (engine(&[], "destinations = 8\n"), FakeKernel::default());
    engine.begin(at(0.0), &mut kernel).unwrap();
    for number in 0..40u32 {
        let to = format!("10.{number}.0.0/24");
        engine.observe(OWN, &outcome(&to, BBR, Group::Treated, 100.0), at(f64::from(number)));
        engine.tick(at(f64::from(number) + 0.5), None, &mut kernel);
    }
    for tick in 0..20 {
        engine.tick(at(100.0 + f64::from(tick)), None, &mut kernel);
    }
    let leaves = kernel.rows.keys().filter(|key| key.prefix.length() == 24).count();
    assert!((1..=8).contains(&leaves), "{leaves}");
    assert!(kernel.rows.len() <= 16, "{:?}", kernel.rows.keys());
    assert!(row(&kernel, "10.39.0.0/24").is_some() && row(&kernel, "10.0.0.0/24").is_none());
}

#[test]
fn overrides_are_reported_and_dctcp_is_limited_to_data_centres() {
    let config = "[[override]]\nprefix = \"10.0.0.0/8\"\ndata_center = true\n[[override]]\nprefix = \
                  \"192.0.2.0/24\"\nkeep = true\n";
    let (mut engine, mut kernel) = (engine(&[], config), FakeKernel::default());
    engine.begin(at(0.0), &mut kernel).unwrap();
    assert_eq!(
        kernel.overrides,
        [(prefix("10.0.0.0/8"), Override::DataCenter), (prefix("192.0.2.0/24"), Override::Keep)]
    );
    let dctcp = engine.setup.arms.find("dctcp").unwrap();
    for to in ["10.1.2.0/24", "198.51.100.0/24"] {
        engine.observe(OWN, &outcome(to, CUBIC, Group::HeldOut, 100.0), at(1.0));
    }
    engine.tick(at(2.0), None, &mut kernel);
    // The rows include dctcp, because the BPF program decides where it may be drawn.
    assert!(kernel.netns_rows[&OWN].incoming.probability(dctcp) > 0.1);
    let shown = |to: &str| engine.explain(prefix(to), at(3.0)).explained[0].arms[dctcp.index()].weight_in;
    assert!(shown("10.1.2.0/24").is_some_and(|probability| probability > 0.1));
    assert_eq!(shown("198.51.100.0/24"), Some(0.0));
}

#[test]
fn learned_state_is_restored_after_a_restart_and_foreign_state_is_rejected() {
    let (mut before, mut kernel) = (engine(&[], ""), FakeKernel::default());
    before.begin(at(0.0), &mut kernel).unwrap();
    learn(&mut before, &mut kernel, "192.0.2.0/24", 30, [400.0, 100.0]);
    let learned = before.learned().next().unwrap().1.clone();
    let (mut after, mut anew) = (engine(&[], ""), FakeKernel::default());
    after.restore_from(OWN, learned.clone(), at(50.0)).unwrap();
    after.begin(at(50.0), &mut anew).unwrap();
    assert_eq!(row(&anew, "192.0.2.0/24").unwrap().incoming, row(&kernel, "192.0.2.0/24").unwrap().incoming);
    let mut other = engine(&["--policy", "ucb"], "");
    assert!(other.restore_from(OWN, learned, at(50.0)).unwrap_err().contains("policy"));
}

#[test]
fn no_urgent_row_starves_when_there_are_very_many() {
    let (mut engine, mut kernel) = (engine(&[], ""), FakeKernel::default());
    engine.begin(at(0.0), &mut kernel).unwrap();
    // At every tick, more destinations have new data than are written.
    for tick in 0..3 {
        for number in 0..1_500u32 {
            let to = format!("10.{}.{}.0/24", number / 250, number % 250);
            engine.observe(OWN, &outcome(&to, BBR, Group::Treated, 100.0), at(f64::from(tick)));
        }
        engine.tick(at(f64::from(tick) + 0.5), None, &mut kernel);
    }
    let leaves = kernel.rows.keys().filter(|key| key.prefix.length() == 24).count();
    assert_eq!(leaves, 1_500);
}

#[test]
fn an_unknown_namespace_has_no_selection_and_a_new_one_uses_its_own_default() {
    let (mut engine, mut kernel) = (engine(&["--policy", "bpftune"], ""), FakeKernel::default());
    engine.begin(at(0.0), &mut kernel).unwrap();
    assert!(!kernel.netns_rows.contains_key(&8));
    engine.scan_namespaces([8, 9].map(|netns| (netns, format!("unit {netns}.service"))).into(), at(1.0));
    engine.tick(at(1.0), None, &mut kernel);
    let incoming = &kernel.netns_rows[&8].incoming;
    assert_eq!(
        (incoming.holdout(), incoming.probability(BBR)),
        (0.05, 1.0),
        "before it has learned, bpftune keeps the default"
    );
    assert!(!kernel.netns_rows.contains_key(&9));
}
