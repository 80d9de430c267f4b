//! Tests of the records on the disk, as readers of the folder see them.

mod addresses;
mod damage;
mod disks;
mod key;
mod kills;
mod merging;
mod names;
mod settings;
mod trouble;
mod writing;

use super::{Rows, Settings, Writer};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::{Field, Row as Stored};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use thalweg_store::Problem;
use thalweg_trace::{RecordRow, Row, Value};

const PATIENCE: Duration = Duration::from_secs(60);

/// Environment variable with the folder, for a test that runs itself again in another environment.
const FOLDER: &str = "THALWEG_TEST_FOLDER";

/// Returns a row with a value in every kind of column, identified by its connection number.
fn row(number: u64) -> RecordRow {
    RecordRow {
        end_us: 1_769_860_800_000_000 + 1000 * number,
        connection: number,
        kind: "close",
        source: "agent",
        machine: Some("edge-7".into()),
        joined: Some(number % 3 == 0),
        ip_version: Some(4),
        remote_address: Some(format!("192.0.2.{}", number % 256).into()),
        direction: (number % 2 == 0).then_some("in"),
        cc: Some(if number % 5 == 0 { "bbr" } else { "cubic" }.into()),
        acked_bytes: Some(u64::MAX - number),
        app_limited_share: Some(0.25),
        buffer_bdp: (number % 2 == 0).then_some(number as f64 / 8.0),
        ..RecordRow::default()
    }
}

/// Opens a directory that may just have been unlocked. Between fork and exec, a process that another test starts holds
/// the lock, too.
fn open<T>(open: impl Fn(Settings) -> Result<T, Problem>, settings: &Settings) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match open(settings.clone()) {
            Err(problem) if problem.code == "busy" && Instant::now() < deadline => {
                std::thread::sleep(Duration::from_millis(5));
            }
            opened => return opened.expect("it can be opened"),
        }
    }
}

fn rows(numbers: std::ops::Range<u64>) -> Rows {
    let mut rows = Rows::default();
    numbers.for_each(|number| rows.push(&row(number)));
    rows
}

/// Returns settings with a flush interval that tests do not reach.
fn settings(folder: &Path) -> Settings {
    Settings { flush: Duration::from_secs(3600), ..Settings::of(folder.to_owned()) }
}

/// Returns the first flush number, the last one and the path of each file of a folder, in order.
fn files(folder: &Path) -> Vec<(u64, u64, PathBuf)> {
    let mut files: Vec<_> = fs::read_dir(folder)
        .expect("a folder")
        .filter_map(|entry| {
            let path = entry.expect("an entry").path();
            let stem = path.file_name()?.to_str()?.strip_suffix(".parquet")?.to_owned();
            let mut numbers = stem.split('-').skip(1).map(|number| number.parse().ok());
            Some((numbers.next()??, numbers.next()??, path))
        })
        .collect();
    files.sort();
    files
}

/// Returns the rows that a reader finds if it skips files that are part of merged ones.
fn stored(folder: &Path) -> Vec<Stored> {
    loop {
        let all = files(folder);
        let is_part = |&(first, last, _): &(u64, u64, PathBuf)| {
            all.iter().any(|other| other.0 <= first && last <= other.1 && (other.0, other.1) != (first, last))
        };
        let read = |(_, _, path): &(u64, u64, PathBuf)| {
            let reader = SerializedFileReader::new(File::open(path).ok()?).expect("Parquet");
            Some(reader.get_row_iter(None).expect("rows").map(|row| row.expect("a row")).collect::<Vec<_>>())
        };
        // Otherwise, a file was removed since the directory was listed.
        if let Some(rows) = all.iter().filter(|file| !is_part(file)).map(read).collect::<Option<Vec<_>>>() {
            return rows.concat();
        }
    }
}

fn found(folder: &Path) -> Vec<u64> {
    let number = |row: &Stored| match field(row, "connection") {
        Field::ULong(number) => number,
        other => panic!("{other:?}"),
    };
    let mut numbers: Vec<u64> = stored(folder).iter().map(number).collect();
    numbers.sort_unstable();
    numbers
}

fn field(row: &Stored, name: &str) -> Field {
    row.get_column_iter().find(|(column, _)| *column == name).unwrap_or_else(|| panic!("no column {name}")).1.clone()
}

fn is_stored_as(row: &RecordRow, stored: &Stored) -> bool {
    let mut expected = Vec::new();
    let mut columns = RecordRow::TABLE.columns.iter();
    row.values(&mut |value| {
        let field = match value {
            Value::U64(value) => Field::ULong(value),
            Value::F64(value) => Field::Double(value),
            Value::Text(value) => Field::Str(value.to_owned()),
            Value::Bool(value) => Field::Bool(value),
            Value::Empty => Field::Null,
        };
        expected.push((columns.next().expect("a column").name.to_owned(), field));
    });
    stored.get_column_iter().map(|(name, field)| (name.clone(), field.clone())).collect::<Vec<_>>() == expected
}

fn wait_until(what: &str, writer: &Writer, is_so: impl Fn(&super::Health) -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so(&writer.health()) {
        assert!(Instant::now() < deadline, "waited too long until {what}: {:?}", writer.health());
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn flush(writer: &mut Writer) {
    static HOURS: AtomicU64 = AtomicU64::new(0);
    let hours = HOURS.fetch_add(2, Ordering::Relaxed) + 2;
    writer.tick(Instant::now() + Duration::from_secs(3600 * hours));
}

fn take(writer: &mut Writer, numbers: std::ops::Range<u64>) {
    let before = writer.health().rows_written;
    let many = numbers.end - numbers.start;
    numbers.for_each(|number| writer.take(row(number)));
    flush(writer);
    wait_until("rows are written", writer, |health| health.rows_written == before + many);
}

/// Runs a test again in a separate process, started by the command `before`, with a folder.
fn again(before: &[&str], module: &str, test: &str, folder: &Path) -> Output {
    let (_, module) = module.split_once("::").expect("the path of a module");
    let this = std::env::current_exe().expect("the tests");
    let mut command = Command::new(before[0]);
    command.args(&before[1..]).arg(this).args(["--exact", &format!("{module}::{test}"), "--test-threads=1"]);
    command.arg("--nocapture").env(FOLDER, folder).output().expect("it starts")
}

/// Reports that a test is skipped on this machine; in CI, fails instead.
fn left_out(what: &str, why: &str) {
    assert!(std::env::var("THALWEG_CI").as_deref() != Ok("1"), "{what} must be tested, but: {why}");
    eprintln!("left out: {what}: {why}");
}
