//! Tests of runs, with engines whose experiments fail or are untrustworthy intentionally.

use super::*;
use crate::engine::{Controller, Failure, Job, Outcome, Performance, Records};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Mutex;
use thalweg_plan::plan::{Experiment, Plan};
use thalweg_store::Host;
use thalweg_trace::{PacketRow, QueueRow, Sink};
use thalweg_units::Span;

/// An engine whose experiments call a function with their repetition number and the check for cancellation.
struct Scripted<B>(B);

impl<B: Fn(u32, &dyn Fn() -> bool) -> Result<(), Failure> + Sync> Engine for Scripted<B> {
    fn name(&self) -> &'static str {
        "scripted"
    }
    fn about(&self) -> &'static str {
        "Does as it is told."
    }
    fn result_version(&self) -> String {
        "1".to_owned()
    }
    fn why_not(&self) -> Option<String> {
        None
    }
    fn controllers(&self) -> Vec<Controller> {
        Vec::new()
    }
    fn honours(&self) -> &'static [&'static str] {
        &[]
    }
    fn run(&self, job: &Job<'_>, sink: &mut dyn Sink) -> Result<Outcome, Failure> {
        let repetition = job.experiment.repetition;
        sink.queue(QueueRow {
            experiment: 0,
            repetition: repetition.into(),
            link: "forward",
            t_us: 0,
            backlog_bytes: 0,
            backlog_packets: 0,
            dropped_packets: 0,
            early_drops: None,
            policed_packets: None,
            lost_packets: 0,
            marked_packets: 0,
            sent_packets: 0,
            sent_bytes: 0,
            sojourn_sum_us: None,
            capacity_bytes: None,
        });
        self.0(repetition, job.is_cancelled)?;
        let (measured, untrustworthy) = (BTreeMap::new(), Vec::new());
        Ok(Outcome { packets: 2, performance: Performance { lasted: Span::from_secs(1), measured, untrustworthy } })
    }
}

/// An engine that logs commands and reports its measurements as untrustworthy.
struct Doubtful;

impl Engine for Doubtful {
    fn name(&self) -> &'static str {
        "scripted"
    }
    fn about(&self) -> &'static str {
        "Doubts itself."
    }
    fn result_version(&self) -> String {
        "1".to_owned()
    }
    fn why_not(&self) -> Option<String> {
        None
    }
    fn controllers(&self) -> Vec<Controller> {
        Vec::new()
    }
    fn honours(&self) -> &'static [&'static str] {
        &[]
    }
    fn records(&self) -> Records {
        Records::Capture
    }
    fn run(&self, job: &Job<'_>, sink: &mut dyn Sink) -> Result<Outcome, Failure> {
        (job.log)(&format!("# {}\nip link add {}\n", job.id, job.experiment.repetition));
        if let Some(capture) = job.capture {
            std::fs::write(capture, "capture").unwrap();
            sink.packet(PacketRow {
                experiment: 0,
                repetition: 0,
                link: "forward",
                t_us: 0,
                number: 0,
                fate: "queued",
                size_bytes: 1500,
                backlog_bytes: 0,
                cause: None,
                sojourn_us: None,
                marked: None,
            });
        }
        Ok(Outcome {
            packets: 2,
            performance: Performance {
                lasted: Span::from_secs(1),
                measured: BTreeMap::from([("relay_lateness_p99_us".to_owned(), 5000.0)]),
                untrustworthy: vec!["the relay was late".to_owned(), "packets were missed".to_owned()],
            },
        })
    }
}

#[derive(Clone, Default)]
struct CapturedOutput(Arc<Mutex<Vec<u8>>>);

impl Write for CapturedOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn open(directory: &Path, repetitions: u32) -> RunDirectory {
    open_with(directory, repetitions, |_| {})
}

fn open_with(directory: &Path, repetitions: u32, change: impl Fn(&mut Experiment)) -> RunDirectory {
    let mut experiment: Experiment = serde_json::from_str(include_str!("../../tests/data/experiment.json")).unwrap();
    change(&mut experiment);
    let plan = Plan {
        format: 1,
        engine: "scripted".to_owned(),
        name: "scripted".to_owned(),
        about: String::new(),
        source: String::new(),
        scenario_toml: String::new(),
        traces: BTreeMap::new(),
        profiles: BTreeMap::new(),
        experiments: (0..repetitions).map(|repetition| Experiment { repetition, ..experiment.clone() }).collect(),
    };
    RunDirectory::open(directory, RunFile::new(plan, "0.1.0", "1", Host::default(), None)).unwrap()
}

fn run_all(
    directory: &RunDirectory,
    interrupted: &AtomicBool,
    behaviour: impl Fn(u32, &dyn Fn() -> bool) -> Result<(), Failure> + Sync,
) -> (Exit, Vec<Value>) {
    run_on(&Scripted(behaviour), directory, interrupted)
}

fn run_on(engine: &dyn Engine, directory: &RunDirectory, interrupted: &AtomicBool) -> (Exit, Vec<Value>) {
    guard::install();
    let captured = CapturedOutput::default();
    let output = Output::new(captured.clone());
    let all: Vec<usize> = (0..directory.run().experiments.len()).collect();
    let exit = execute(engine, directory, &all, 1, &output, interrupted).unwrap();
    let text = String::from_utf8(captured.0.lock().unwrap().clone()).unwrap();
    (exit, text.lines().map(|line| serde_json::from_str(line).unwrap()).collect())
}

fn names(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["event"].as_str().unwrap()).collect()
}

fn journal(directory: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(directory.join("events.jsonl")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_panic_in_one_experiment_fails_it_and_the_others_continue() {
    let temporary = tempfile::tempdir().unwrap();
    let directory = open(temporary.path(), 3);
    let (exit, events) = run_all(&directory, &AtomicBool::new(false), |repetition, _| {
        assert!(repetition != 1, "inflight became negative");
        Ok(())
    });
    assert_eq!(exit, Exit::Failed);
    let order = ["plan", "started", "finished", "started", "failed", "started", "finished", "done"];
    assert_eq!(names(&events), order);
    let message = events[4]["message"].as_str().unwrap();
    assert_eq!((&events[4]["code"], &events[4]["repetition"]), (&"bug".into(), &1.into()));
    assert!(message.contains("inflight became negative") && message.contains("report"), "{message}");
    let path = temporary.path().display();
    let replay = format!("thalweg-engine run --plan '{path}/run.json' --out '{path}-replay' --shard 2/3");
    assert!(message.contains(&replay), "{message}");
    assert_eq!(names(&journal(temporary.path())), order[1..7]);
    for table in ["samples", "state", "queue", "flows"] {
        let files = std::fs::read_dir(temporary.path().join(table)).unwrap().count();
        assert_eq!(files, 2, "nothing must be left of what failed in {table}");
    }
}

#[test]
fn failed_experiments_are_retried_and_finished_ones_are_not() {
    let temporary = tempfile::tempdir().unwrap();
    let (exit, events) =
        run_all(&open(temporary.path(), 3), &AtomicBool::new(false), |repetition, _| match repetition {
            2 => Err(thalweg_lab::Error::new("invalid-experiment", "rtt: found 0", "").into()),
            _ => Ok(()),
        });
    assert_eq!(exit, Exit::Failed);
    let done = events.last().unwrap();
    assert_eq!([&done["finished"], &done["failed"], &done["present"]], [2, 1, 0]);
    let failed = events.iter().find(|event| event["event"] == "failed").unwrap();
    assert_eq!([&failed["code"], &failed["message"]], ["invalid-experiment", "rtt: found 0"]);

    let (exit, events) = run_all(&open(temporary.path(), 3), &AtomicBool::new(false), |_, _| Ok(()));
    assert_eq!(exit, Exit::Finished);
    assert_eq!(names(&events), ["plan", "started", "finished", "done"]);
    assert_eq!([&events[0]["experiments"], &events[0]["present"], &events[0]["pending"]], [3, 2, 1]);
    assert_eq!(events[1]["repetition"], 2);
}

#[test]
fn an_interruption_abandons_the_running_experiment_and_starts_no_other() {
    let temporary = tempfile::tempdir().unwrap();
    let interrupted = AtomicBool::new(false);
    let (exit, events) = run_all(&open(temporary.path(), 3), &interrupted, |repetition, is_cancelled| {
        if repetition == 0 {
            return Ok(());
        }
        assert!(!is_cancelled());
        interrupted.store(true, Ordering::Relaxed);
        assert!(is_cancelled());
        Err(Failure::Cancelled)
    });
    assert_eq!(exit, Exit::Interrupted);
    assert_eq!(names(&events), ["plan", "started", "finished", "started", "interrupted"]);
    assert_eq!(names(&journal(temporary.path())), ["started", "finished", "started", "interrupted"]);
    assert_eq!(std::fs::read_dir(temporary.path().join("flows")).unwrap().count(), 1);
}

/// A reader that exits after this number of lines.
struct Dies(usize);

impl Write for Dies {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 = self.0.checked_sub(1).ok_or(io::ErrorKind::BrokenPipe)?;
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_run_stops_cleanly_when_the_reader_of_its_output_exits() {
    for lines in 0..4 {
        let temporary = tempfile::tempdir().unwrap();
        let directory = open(temporary.path(), 100);
        let output = Output::new(Dies(lines));
        let engine = Scripted(|_, _: &dyn Fn() -> bool| Ok(()));
        let all: Vec<usize> = (0..100).collect();
        let exit = execute(&engine, &directory, &all, 1, &output, &AtomicBool::new(false)).unwrap();
        assert_eq!(exit, Exit::Interrupted);
        let journal = journal(temporary.path());
        assert_eq!(journal.last().unwrap()["event"], "interrupted");
        let files = std::fs::read_dir(temporary.path().join("flows")).unwrap().count();
        let finished = journal.iter().filter(|event| event["event"] == "finished").count();
        assert!(files == finished && files <= 2, "{files} files, {finished} finished");
    }
}

#[test]
fn untrustworthiness_reasons_and_measurements_are_reported_and_stored() {
    let temporary = tempfile::tempdir().unwrap();
    let (exit, events) = run_on(&Doubtful, &open(temporary.path(), 1), &AtomicBool::new(false));
    assert_eq!(exit, Exit::Finished);
    assert_eq!(names(&events), ["plan", "started", "untrustworthy", "untrustworthy", "finished", "done"]);
    let reasons = [&events[2]["reason"], &events[3]["reason"]];
    assert_eq!(reasons, ["the relay was late", "packets were missed"]);
    assert_eq!((&events[2]["id"], &events[2]["repetition"]), (&events[1]["id"], &0.into()));
    assert_eq!(events[4]["measured"], serde_json::json!({"relay_lateness_p99_us": 5000.0}));
    assert_eq!(names(&journal(temporary.path())), ["started", "untrustworthy", "untrustworthy", "finished"]);
}

#[test]
fn an_engine_without_measurements_reports_none() {
    let temporary = tempfile::tempdir().unwrap();
    let (_, events) = run_all(&open(temporary.path(), 1), &AtomicBool::new(false), |_, _| Ok(()));
    assert_eq!(events[2]["event"], "finished");
    assert!(events[2].get("measured").is_none(), "{}", events[2]);
}

#[test]
fn commands_log_lists_the_commands_of_each_experiment() {
    let temporary = tempfile::tempdir().unwrap();
    let directory = open(temporary.path(), 2);
    run_on(&Doubtful, &directory, &AtomicBool::new(false));
    let log = std::fs::read_to_string(temporary.path().join("commands.log")).unwrap();
    let [first, second] = [0, 1].map(|index| directory.run().experiments[index].id.as_str());
    assert_eq!(log, format!("# {first}\nip link add 0\n# {second}\nip link add 1\n"));
}

#[test]
fn packets_are_recorded_if_the_scenario_enables_it_and_the_engine_supports_it() {
    let recorded = |engine: &dyn Engine, record: bool| -> Vec<String> {
        let temporary = tempfile::tempdir().unwrap();
        let directory = open_with(temporary.path(), 1, |experiment| experiment.engine.record = record);
        let (exit, _) = run_on(engine, &directory, &AtomicBool::new(false));
        assert_eq!(exit, Exit::Finished);
        let files = std::fs::read_dir(temporary.path().join("packets")).into_iter().flatten();
        let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
        let mut extensions: Vec<String> = names.map(|name| name.split_once('.').unwrap().1.to_owned()).collect();
        extensions.sort();
        extensions
    };
    assert_eq!(recorded(&Doubtful, true), ["parquet", "pcapng"]);
    assert_eq!(recorded(&Doubtful, false), [""; 0]);
    assert_eq!(recorded(&Scripted(|_, _: &dyn Fn() -> bool| Ok(())), true), [""; 0]);
}
