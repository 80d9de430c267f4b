//! Reads a recording: the inputs and outputs of a kernel's controller, call by call. docs/concepts/fidelity.md
//! describes the format.

use flate2::read::GzDecoder;
use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Supported version of the text format.
const FORMAT: &str = "1";

/// Values by name; `None` for a value that is absent.
pub type Values<'text> = BTreeMap<&'text str, Option<u64>>;

#[derive(Debug)]
pub struct Recording {
    /// The file name without its extensions.
    pub name: String,
    /// The header above the calls.
    pub header: BTreeMap<String, String>,
    text: String,
}

impl Recording {
    /// Returns the calls, in order.
    pub fn calls(&self) -> impl Iterator<Item = Call<'_>> {
        let lines = (1..).zip(self.text.lines()).skip(self.header.len() + 1);
        let mut left = Values::new();
        lines.map(move |(line, text)| parse_call(line, text, &mut left))
    }
}

#[derive(Debug)]
pub struct Call<'text> {
    /// Line of the call in the text, from 1.
    pub line: usize,
    /// Name of the called function in the kernel.
    pub name: &'text str,
    /// The values before the call, including those left by earlier calls.
    pub given: Values<'text>,
    /// The values after the call.
    pub produced: Values<'text>,
}

impl Call<'_> {
    /// Returns an input value, if present.
    pub fn optional(&self, name: &str) -> Option<u64> {
        *self.given.get(name).unwrap_or_else(|| panic!("line {}: {name} is missing", self.line))
    }

    pub fn given(&self, name: &str) -> u64 {
        self.optional(name).unwrap_or_else(|| panic!("line {}: {name} has no value", self.line))
    }

    pub fn produced(&self, name: &str) -> u64 {
        let value = self.produced.get(name).copied().flatten();
        value.unwrap_or_else(|| panic!("line {}: {name} has no value after the call", self.line))
    }

    /// Whether the call reports a loss: TCP_CA_Recovery or CA_EVENT_LOSS, which have the same number.
    pub fn is_loss(&self) -> bool {
        matches!(self.name, "set_state" | "cwnd_event") && self.given("arg") == 3
    }

    /// Whether the call is an ACK to which the controller may respond.
    pub fn is_ack(&self) -> bool {
        matches!(self.name, "cong_avoid" | "cong_control")
    }
}

pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/lockstep/recordings")
}

/// Returns all recordings, by name.
pub fn all() -> Vec<Recording> {
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| is_recording(path))
        .collect();
    paths.sort();
    paths.iter().map(|path| read(path)).collect()
}

pub fn named(name: &str) -> Recording {
    read(&folder().join(format!("{name}.txt.gz")))
}

fn is_recording(path: &Path) -> bool {
    path.to_string_lossy().ends_with(".txt.gz")
}

fn read(path: &Path) -> Recording {
    let mut text = String::new();
    let file = std::fs::File::open(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    GzDecoder::new(file).read_to_string(&mut text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let name = path.file_name().unwrap().to_string_lossy().trim_end_matches(".txt.gz").to_owned();
    parse(name, text)
}

fn parse(name: String, text: String) -> Recording {
    let header: BTreeMap<String, String> = text
        .lines()
        .take_while(|line| !line.is_empty())
        .map(|line| line.split_once(' ').unwrap_or_else(|| panic!("{name}: header {line:?}")))
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect();
    assert_eq!(header["lockstep"], FORMAT, "{name}: a form that this test does not read");
    Recording { name, header, text }
}

fn parse_call<'text>(line: usize, text: &'text str, left: &mut Values<'text>) -> Call<'text> {
    let (given, produced) = text.split_once('>').unwrap_or_else(|| panic!("line {line} has no >"));
    let mut words = given.split_whitespace();
    let name = words.next().unwrap_or_else(|| panic!("line {line} is empty"));
    words.for_each(|word| put(line, word, left));
    let given = left.clone();
    produced.split_whitespace().for_each(|word| put(line, word, left));
    Call { line, name, given, produced: left.clone() }
}

fn put<'text>(line: usize, word: &'text str, left: &mut Values<'text>) {
    let number = |digits: &str| digits.parse::<u64>().unwrap_or_else(|_| panic!("line {line}: {word}"));
    let (name, value) = if let Some((name, value)) = word.split_once('=') {
        (name, (value != "-").then(|| number(value)))
    } else {
        let (name, increment) = word.split_once('+').unwrap_or_else(|| panic!("line {line}: {word}"));
        (name, Some(left[name].unwrap() + number(increment)))
    };
    left.insert(name, value);
}

#[test]
fn values_persist_until_replaced_and_increments_accumulate() {
    let text = "lockstep 1\nscene synthetic\n\ninit a=5 b=7 > c=1\nset_state a+2 b=- > a=9\n";
    let recording = parse("test".to_owned(), text.to_owned());
    assert_eq!(recording.header["scene"], "synthetic");
    let calls: Vec<Call<'_>> = recording.calls().collect();
    let [first, second] = &calls[..] else { panic!("{calls:?}") };
    assert_eq!((first.line, first.given("a"), first.given("b"), first.produced("c")), (4, 5, 7, 1));
    assert_eq!((second.line, second.given("a"), second.optional("b"), second.produced("a")), (5, 7, None, 9));
    assert_eq!(second.produced("c"), 1);
}
