//! A program that a host runs through its supervisor.

use super::supervisor::{Answer, Ending, Order, STOP};
use crate::error::Error;
use crate::wakeup::Wakeup;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::thread;
use std::time::Instant;

/// A program and its descendants. Dropping it terminates them.
#[derive(Debug)]
pub(super) struct Process {
    supervisor: Child,
    input: Option<ChildStdin>,
    has_exited: Arc<AtomicBool>,
    /// Time of the start.
    pub started: Instant,
    /// File of the standard output.
    pub stdout: PathBuf,
    /// File of the standard error.
    pub stderr: PathBuf,
    /// The folder `{out}`.
    pub out: PathBuf,
}

/// Working directory and output files of a program.
#[derive(Clone, Debug)]
pub(super) struct Surroundings<'a> {
    /// Working directory.
    pub folder: &'a str,
    /// Folder of the flow's output.
    pub output: &'a Path,
    /// Name of the folder `{out}` in `output`, and of the output files without the suffix.
    pub name: String,
}

/// Values of the placeholders in a command.
#[derive(Clone, Debug)]
pub(super) struct Values {
    /// Address of the serving host.
    pub server: String,
    /// Port of the server.
    pub port: u16,
    /// Bytes to transfer; `None` replaces the placeholder by nothing.
    pub size: Option<u64>,
    /// Congestion control.
    pub cc: String,
}

/// Id of a program, and its exit or the reason why that is missing.
pub type EndOf<Id> = (Id, Result<Ending, String>);

impl Process {
    /// Starts a program; `ended` receives `id` and the exit.
    ///
    /// # Errors
    /// If the program's folder, its supervisor or a thread cannot be created.
    pub fn start<Id: Send + 'static>(
        words: &[String],
        values: &Values,
        surroundings: &Surroundings<'_>,
        (id, ended): (Id, Sender<EndOf<Id>>),
        wakeup: &Wakeup,
    ) -> Result<Process, Error> {
        let Surroundings { folder, output, name } = surroundings;
        let out = output.join(name);
        std::fs::create_dir_all(&out).map_err(|error| {
            let message = format!("the folder {} cannot be created: {error}", out.display());
            Error::new("bad-place", message, "choose another directory with --out")
        })?;
        let file = |kind: &str| output.join(format!("{name}.{kind}"));
        let (stdout, stderr) = (file("stdout"), file("stderr"));
        let words = words.iter().map(|word| fill_in(word, values, &out)).collect();
        let order = Order { words, folder: PathBuf::from(folder), stdout: stdout.clone(), stderr: stderr.clone() };
        let (mut supervisor, answers) = supervise(&order).map_err(|error| {
            let message = format!("the supervisor of a program cannot be started: {error}");
            Error::new("no-process", message, "close other programs, or raise ulimit -u")
        })?;
        let wakeup = wakeup.clone();
        let has_exited = Arc::new(AtomicBool::new(false));
        let exited = Arc::clone(&has_exited);
        thread::Builder::new()
            .name("program".to_owned())
            .spawn(move || {
                // The send fails if the receiver has been dropped.
                let _ = ended.send((id, answer(answers, &exited)));
                wakeup.notify();
            })
            .map_err(|error| Error::new("no-resources", error.to_string(), "close other programs"))?;
        let input = supervisor.stdin.take();
        Ok(Process { supervisor, input, has_exited, started: Instant::now(), stdout, stderr, out })
    }

    /// Returns whether the program exited before it was stopped. The exit status is sent later, when the processes that
    /// it left behind are terminated.
    pub fn has_exited(&self) -> bool {
        self.has_exited.load(Ordering::Acquire)
    }

    /// Requests that the program and its descendants be terminated: by SIGTERM, and after a timeout by SIGKILL.
    pub fn stop(&mut self) {
        if let Some(input) = &mut self.input {
            // The write fails if the supervisor has exited.
            let _ = input.write_all(STOP);
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // At the end of its input, the supervisor kills the remaining processes, and exits.
        drop(self.input.take());
        let _ = self.supervisor.wait();
        // Fails if the folder is not empty.
        let _ = std::fs::remove_dir(&self.out);
        for file in [&self.stdout, &self.stderr] {
            if std::fs::metadata(file).is_ok_and(|about| about.len() == 0) {
                let _ = std::fs::remove_file(file);
            }
        }
    }
}

fn fill_in(word: &str, values: &Values, out: &Path) -> String {
    let size = values.size.map_or_else(String::new, |size| size.to_string());
    let placeholders = [
        ("{server}", values.server.clone()),
        ("{port}", values.port.to_string()),
        ("{size}", size),
        ("{cc}", values.cc.clone()),
        ("{out}", out.display().to_string()),
    ];
    placeholders.iter().fold(word.to_owned(), |word, (placeholder, value)| word.replace(placeholder, value))
}

fn supervise(order: &Order) -> io::Result<(Child, impl BufRead + Send + 'static)> {
    let mut command = Command::new(std::env::current_exe()?);
    // In a separate process group, so that it survives a signal to the host's group, and can terminate the program.
    command.arg("supervise").process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut supervisor = command.spawn()?;
    let mut line = serde_json::to_vec(order)?;
    line.push(b'\n');
    if let Some(input) = &mut supervisor.stdin {
        input.write_all(&line)?;
    }
    let answers = supervisor.stdout.take().ok_or_else(|| io::Error::other("it has no output"))?;
    Ok((supervisor, BufReader::new(answers)))
}

fn answer(answers: impl BufRead, exited: &AtomicBool) -> Result<Ending, String> {
    for line in answers.lines().map_while(Result::ok) {
        match serde_json::from_str(&line) {
            Ok(Answer::Exited) => exited.store(true, Ordering::Release),
            Ok(Answer::Ended(ending)) => return Ok(ending),
            Ok(Answer::Refused(why)) => return Err(why),
            Err(_) => break,
        }
    }
    Err("its supervisor was killed".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_placeholder_is_replaced_at_any_position() {
        let values = Values { server: "10.77.1.2".to_owned(), port: 4434, size: Some(1000), cc: "bbr".to_owned() };
        let word = "--url=https://{server}:{port}/{size}?cc={cc}&log={out}/x&json={\"a\":1}";
        let filled = "--url=https://10.77.1.2:4434/1000?cc=bbr&log=/o/x&json={\"a\":1}";
        assert_eq!(fill_in(word, &values, Path::new("/o")), filled);
    }
}
