//! `thalweg-engine shell`: runs a program of the user on the path of a scenario.

use crate::arguments;
use crate::engine::{Engine, Failure, Job, Outcome, Programs, Records};
use crate::engine_events::{EngineEvent, Output, seconds};
use crate::run::find_engine;
use crate::status::Status;
use crate::{machine, plan_file};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::flag;
use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;
use thalweg_lab::protocol::HostEvent;
use thalweg_lab::session::{Detached, EXIT_CODE, Order, Session, Terminal};
use thalweg_plan::labels::unused_columns;
use thalweg_plan::plan::{Buffer, Capacity, Experiment, Plan};
use thalweg_store::{Exit, ExperimentId, Problem, RunDirectory, RunFile};

/// Default shell, if `SHELL` is not set.
const SHELL: &str = "/bin/sh";

const SERVER_OUTPUT: &str = "server.log";

/// Exit codes above this value encode a signal: 128 plus its number.
const SIGNALLED: f64 = 128.0;

/// Runs a command on the path of the plan's experiment. Returns the exit code of the command.
pub fn shell(options: &arguments::Shell, output: &Output) -> Result<ExitCode, Problem> {
    machine::experiments_that_fit()?;
    let mut plan = plan_file::read(&options.plan)?;
    let engine = find_engine(&plan.engine)?;
    check(engine, &plan, options)?;
    for experiment in &mut plan.experiments {
        experiment.flows.clear();
        experiment.duration_ns = None;
        experiment.engine.record = options.pcap;
    }
    let signals = Signals::install();
    let (version, host) = (engine.result_version(), machine::host());
    let run = RunFile::new(plan, env!("CARGO_PKG_VERSION"), &version, host, machine::command()?);
    let directory = RunDirectory::open(&options.out, run)?;
    let place = Place { engine, directory: &directory, output, status: Status::new(options) };
    if directory.was_present(&place.id().id) {
        let path = options.out.display().to_string();
        return Err(Problem::refused(
            "other-run",
            &path,
            "a finished session",
            "a new directory",
            "choose another directory with --out",
        ));
    }
    let mut order = order(options, place.experiment(), directory.path());
    if engine.carries() == Programs::Commands {
        detach(&mut order);
    }
    let terminal = Terminal::save();
    let (began, outcome) = (Instant::now(), place.run(&order, &signals));
    place.status.clear();
    let code = outcome.as_ref().ok().and_then(|outcome| outcome.as_ref().ok()).and_then(exit_code);
    if let Some(terminal) = terminal {
        terminal.take_back(code.is_none_or(|code| code > SIGNALLED));
    }
    match outcome? {
        Ok(outcome) => place.finish(&outcome, began)?,
        Err(Failure::Cancelled) => return Ok(Exit::Interrupted.into()),
        Err(Failure::Failed(error)) => return Err(place.fail(&error)?),
    }
    directory.sync()?;
    Ok(ExitCode::from(code.unwrap_or(1.0) as u8))
}

/// Checks that the plan has one experiment, and that its engine can run the requested programs.
fn check(engine: &dyn Engine, plan: &Plan, options: &arguments::Shell) -> Result<(), Problem> {
    let kernel = "use --engine kernel";
    let (is_shell, has_services) = (options.command.is_empty(), !options.reach.is_empty());
    match engine.carries() {
        Programs::None => {
            let expected = "kernel or uml";
            return Err(Problem::refused("no-programs", "engine", engine.name(), expected, "choose one with --engine"));
        }
        Programs::Commands if is_shell => {
            let found = "no command: an interactive shell cannot run in virtual time";
            return Err(Problem::refused("no-terminal", "engine", found, "a command after --", kernel));
        }
        Programs::Commands if has_services => {
            let found = "--reach: services of this machine cannot be reached in virtual time";
            return Err(Problem::refused("no-services", "engine", found, "no --reach", kernel));
        }
        Programs::Commands | Programs::All => {}
    }
    if options.pcap && engine.records() != Records::Capture {
        let found = format!("--pcap: {} does not write packet captures", engine.name());
        return Err(Problem::refused("no-capture", "engine", found, "no --pcap", kernel));
    }
    match plan.experiments.len() {
        1 => Ok(()),
        count => {
            let found = format!("{count} experiments");
            Err(Problem::refused("many-experiments", "plan", found, "one", "thalweg shell FILE creates such a plan"))
        }
    }
}

struct Signals {
    /// SIGINT, as from Ctrl-C.
    interrupted: Arc<AtomicBool>,
    /// SIGTERM, or SIGHUP from a closed terminal.
    ended: Arc<AtomicBool>,
}

impl Signals {
    fn install() -> Signals {
        let [interrupted, ended, quit] = [(); 3].map(|()| Arc::new(AtomicBool::new(false)));
        // Handlers are used instead of SIG_IGN, which the command would inherit.
        for (signal, flag) in [(SIGINT, &interrupted), (SIGQUIT, &quit), (SIGTERM, &ended), (SIGHUP, &ended)] {
            flag::register(signal, Arc::clone(flag)).expect("handlers of these signals can be installed");
        }
        Signals { interrupted, ended }
    }

    fn must_end(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }

    fn is_cancelled(&self) -> bool {
        self.must_end() || self.interrupted.load(Ordering::Relaxed)
    }
}

fn order(options: &arguments::Shell, experiment: &Experiment, run: &Path) -> Order {
    let run = std::path::absolute(run).unwrap_or_else(|_| run.to_owned());
    let shell = || vec![std::env::var_os("SHELL").filter(|shell| !shell.is_empty()).unwrap_or_else(|| SHELL.into())];
    let path = &experiment.forward;
    let rate = match &path.capacity {
        Capacity::Steps { steps } => steps.first().map(|step| step.rate_bps.to_string()),
        Capacity::Unlimited | Capacity::Trace { .. } | Capacity::Profile {} => None,
    };
    let buffer = match path.buffer {
        Buffer::Bytes { bytes } => bytes.to_string(),
        Buffer::Packets { packets } => packets.to_string(),
    };
    let rtt = experiment.rtt_ns.to_string();
    let rate = rate.unwrap_or_default();
    let prompt = ["thalweg", &rate, &rtt].into_iter().filter(|word| !word.is_empty());
    let prompt = prompt.collect::<Vec<_>>().join(" ");
    let mut environment: Vec<(OsString, OsString)> = vec![
        ("THALWEG_RTT".into(), rtt.clone().into()),
        ("THALWEG_RATE".into(), rate.clone().into()),
        ("THALWEG_BUFFER".into(), buffer.into()),
        ("THALWEG_RUN".into(), run.clone().into()),
    ];
    let is_interactive = options.command.is_empty();
    if is_interactive {
        // Commands that bash runs before its first prompt, after its startup files.
        let first = format!("PS1=\"[{prompt}] $PS1\"; unset PROMPT_COMMAND");
        environment.push(("PROMPT_COMMAND".into(), first.into()));
    }
    Order {
        command: if is_interactive { shell() } else { options.command.clone() },
        is_at_receiver: options.on == arguments::End::Receiver,
        server: options.server.clone(),
        server_output: run.join(SERVER_OUTPUT),
        reach: options.reach.clone(),
        detached: None,
        environment,
    }
}

/// Sets the properties that a command in a guest cannot inherit: working directory and environment.
fn detach(order: &mut Order) {
    let folder = std::env::current_dir().unwrap_or_else(|_| "/".into());
    order.detached = Some(Detached { folder, output: Default::default() });
    let variables = std::mem::take(&mut order.environment);
    order.environment = std::env::vars_os().chain(variables).collect();
}

fn exit_code(outcome: &Outcome) -> Option<f64> {
    outcome.performance.measured.get(EXIT_CODE).copied()
}

struct Place<'a> {
    engine: &'static dyn Engine,
    directory: &'a RunDirectory,
    output: &'a Output,
    status: Status,
}

impl Place<'_> {
    fn id(&self) -> &ExperimentId {
        &self.directory.run().experiments[0]
    }

    fn experiment(&self) -> &Experiment {
        &self.directory.run().plan.experiments[0]
    }

    fn run(&self, order: &Order, signals: &Signals) -> Result<Result<Outcome, Failure>, Problem> {
        let experiment = self.experiment();
        self.report(&EngineEvent::Started(self.id()))?;
        // In a session, either direction of a flow can carry the data.
        let unused: Vec<&str> =
            unused_columns(experiment).into_iter().filter(|column| *column != "direction").collect();
        let mut tables = self.directory.begin(&self.id().id, &experiment.sweep, &unused)?;
        let mut capture = None;
        if experiment.engine.record && self.engine.records() == Records::Capture {
            tables.begin_packets()?;
            capture = Some(tables.begin_capture()?.to_owned());
        }
        let traces = self.directory.run().plan.named_traces();
        let session = Session { order, must_end: &|| signals.must_end(), show: &|event| self.show(event) };
        let job = Job {
            experiment,
            id: self.id().id.as_str(),
            traces: &traces,
            is_cancelled: &|| signals.is_cancelled(),
            log: &|lines| {
                // If the log cannot be written, the session continues.
                let _ = self.directory.log(lines);
            },
            capture: capture.as_deref(),
            programs: None,
            session: Some(session),
        };
        let outcome = self.engine.run(&job, &mut tables);
        match outcome {
            Ok(_) => tables.commit()?,
            Err(_) => tables.discard()?,
        }
        Ok(outcome)
    }

    fn show(&self, event: HostEvent) {
        match event {
            HostEvent::Status(status) => self.status.show(&status),
            HostEvent::Connection(connection) => {
                // If the journal cannot be written, the session continues.
                let _ = self.report(&EngineEvent::Connection(&connection));
            }
            _ => {}
        }
    }

    fn finish(&self, outcome: &Outcome, began: Instant) -> Result<(), Problem> {
        let performance = &outcome.performance;
        for reason in &performance.untrustworthy {
            self.report(&EngineEvent::Untrustworthy { id: self.id(), reason })?;
        }
        self.report(&EngineEvent::Finished {
            id: self.id(),
            seconds: seconds(began.elapsed()),
            simulated_s: performance.lasted.as_secs_f64(),
            packets: outcome.packets,
            measured: &performance.measured,
        })
    }

    /// Records a session that failed, and returns the problem.
    fn fail(&self, error: &thalweg_lab::Error) -> Result<Problem, Problem> {
        let message = error.sentence();
        self.report(&EngineEvent::Failed { id: self.id(), code: &error.code, message: &message })?;
        Ok(Problem::failed("session-failed", "session", &error.message, "a path that programs can use", &error.hint))
    }

    fn report(&self, event: &EngineEvent<'_>) -> Result<(), Problem> {
        self.directory.note(event)?;
        // A session continues if the reader of its events has exited.
        let _ = self.output.emit(event);
        Ok(())
    }
}
