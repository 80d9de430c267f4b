use super::*;
use std::fs;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;
use thalweg_units::{Bytes, Span};

fn host(cpu: Option<Cpu>, co_tenants: u32) -> Host {
    Host {
        sndbuf_max_bytes: Bytes(1),
        rcvbuf_max_bytes: Bytes(1),
        delay_jitter_ns: Span::ZERO,
        cpu,
        second_cpu: false,
        co_tenants,
        kernel: None,
        offloads: false,
        interrupt_coalescing_ns: Span::ZERO,
        qdisc: None,
    }
}

fn cpu(slice_ms: u64, period_ms: u64) -> Cpu {
    Cpu {
        slice_ns: Span::from_millis(slice_ms),
        period_ns: Span::from_millis(period_ms),
        per_packet_ns: Span::ZERO,
        per_ack_ns: Span::ZERO,
        slice_jitter_ppm: 0,
        credit: None,
    }
}

fn me() -> u32 {
    rustix::thread::gettid().as_raw_nonzero().get() as u32
}

fn began(thread: u32, host: Host) -> Result<Contention, Error> {
    apply(vec![thread], &host)
}

/// Computes until this thread has run for `ns` nanoseconds; returns the measurements.
fn after_running(contention: &Contention, ns: u64) -> BTreeMap<String, f64> {
    let had = running_ns(&[me()]).unwrap();
    while running_ns(&[me()]).unwrap() < had + ns {}
    contention.measure(None)
}

/// Returns `None` if this machine does not permit the operation. In CI that is a failure.
fn or_say_why<T>(outcome: Result<T, Error>) -> Option<T> {
    outcome
        .inspect_err(|error| {
            assert!(std::env::var_os("THALWEG_CI").is_none(), "{error}");
            println!("not run: {error}");
        })
        .ok()
}

#[test]
fn a_busy_thread_receives_about_a_full_processor_and_a_sleeping_one_none() {
    let busy = began(me(), host(None, 0)).unwrap();
    let measured = after_running(&busy, 100_000_000);
    // Other processes may use the processor too. The kernel updates its accounts at ticks, at most 10 ms apart.
    assert!((0.001..1.15).contains(&measured["cpu_share_received"]), "{measured:?}");
    assert!(!measured.contains_key("cpu_share_asked"), "nothing was asked: {measured:?}");
    let unknown = began(u32::MAX, host(None, 0)).unwrap().measure(None);
    assert!(unknown.is_empty(), "an unknown thread was measured: {unknown:?}");
}

#[test]
fn a_busy_thread_is_limited_to_its_share_in_slices_until_the_limit_is_removed() {
    let spinning = || {
        let Some(shared) = or_say_why(began(me(), host(Some(cpu(20, 80)), 0))) else { return };
        let measured = after_running(&shared, 120_000_000);
        assert!((measured["cpu_share_asked"] - 0.25).abs() < 1e-9, "{measured:?}");
        // Six slices; at each end, a full slice may lie in part of a period.
        assert!((0.2..0.36).contains(&measured["cpu_share_received"]), "{measured:?}");
        // Linux may check the run time at ticks, which are at most 10 ms apart.
        assert!((10e3..31e3).contains(&measured["cpu_slice_median_us"]), "{measured:?}");
        assert!(shared.commands()[0].starts_with("chrt --deadline --sched-runtime 20000000"), "{shared:?}");
        drop(shared);
        let policy = fs::read_to_string(format!("/proc/{}/stat", me())).unwrap();
        let policy: u32 = policy.rsplit(')').next().unwrap().split_whitespace().nth(38).unwrap().parse().unwrap();
        assert_eq!(policy, 0, "SCHED_OTHER");
    };
    thread::spawn(spinning).join().unwrap();
}

#[test]
fn measured_shares_of_several_hosts_are_suffixed_with_the_host_name() {
    let shared = began(me(), host(None, 0)).unwrap();
    assert_eq!(shared.measure(Some("left")).keys().collect::<Vec<_>>(), ["cpu_share_received_of_left"]);
}

#[test]
fn a_full_processor_needs_no_commands() {
    let contention = began(me(), host(Some(cpu(10, 10)), 0)).unwrap();
    assert_eq!(contention.commands(), &[] as &[String]);
    assert!((contention.measure(None)["cpu_share_asked"] - 1.0).abs() < 1e-9);
}

#[test]
fn an_unsupported_period_is_rejected_with_the_limits_of_the_system() {
    let Err(error) = check(&host(Some(cpu(1, 50_000)), 0)) else {
        panic!("50 s are more than sched_deadline_period_max_us")
    };
    assert_eq!(error.code, "no-contention");
    assert!(
        error.message.contains("sched_deadline_period_max_us") || error.message.contains("CAP_SYS_NICE"),
        "{error}"
    );
}

#[test]
fn co_tenants_use_their_share_of_the_processor_and_exit_afterwards() {
    let squeezed = || {
        let shared = began(me(), host(None, 3)).unwrap();
        let children = shared.tenants.as_ref().unwrap().children().to_vec();
        assert_eq!(children.len(), 3);
        let measured = after_running(&shared, 150_000_000);
        assert!(measured["cpu_share_received"] < 0.5, "there are four on one processor: {measured:?}");
        assert!(measured["co_tenants_cpu_share"] > measured["cpu_share_received"], "{measured:?}");
        drop(shared);
        for child in children {
            assert!(!fs::exists(format!("/proc/{child}")).unwrap(), "{child} is still there");
        }
    };
    thread::spawn(squeezed).join().unwrap();
}

/// Not a test: the process that the next test kills.
#[test]
fn the_engine_process_to_be_killed() {
    if std::env::var_os("THALWEG_TEST_KILLED").is_none() {
        return;
    }
    let shared = began(me(), host(None, 2)).unwrap();
    for child in shared.tenants.as_ref().unwrap().children() {
        println!("child {child}.");
    }
    println!("ready.");
    loop {
        thread::park();
    }
}

#[test]
fn co_tenants_exit_when_the_engine_is_killed() {
    use std::io::{BufRead, BufReader};
    let name = "vm::contention::tests::the_engine_process_to_be_killed";
    let mut engine = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture", "--test-threads=1"])
        .env("THALWEG_TEST_KILLED", "1")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut children = Vec::new();
    for line in BufReader::new(engine.stdout.take().unwrap()).lines().map(Result::unwrap) {
        if let Some((_, child)) = line.split_once("child ") {
            children.push(child.trim_end_matches('.').parse::<u32>().unwrap());
        }
        if line.contains("ready.") {
            break;
        }
    }
    assert_eq!(children.len(), 2);
    let is_there =
        |child: &u32| fs::read_to_string(format!("/proc/{child}/stat")).is_ok_and(|stat| !stat.contains(") Z "));
    assert!(children.iter().all(is_there));
    engine.kill().unwrap();
    engine.wait().unwrap();
    let until = Instant::now() + Duration::from_secs(20);
    while children.iter().any(is_there) {
        assert!(Instant::now() < until, "{children:?} are still there");
        thread::sleep(Duration::from_millis(5));
    }
}
