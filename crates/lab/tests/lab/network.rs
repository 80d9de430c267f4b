//! Networks match their plan, leave nothing behind, and can be built without root.

use crate::network_support::{
    cannot_run, dump, experiment, experiment_with_a_far_flow, output_of, output_of_child, roles, wait_until,
};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::process::{Command, Stdio};
use thalweg_lab::net::{LinkKind, Network, choose_link, probe};
use thalweg_plan::plan::Traces;
use thalweg_units::Span;

fn run_in(network: &mut Network, namespace: &str, words: &[&str]) -> String {
    let words: Vec<_> = words.iter().map(Into::into).collect();
    output_of_child(network.spawn(namespace, &words, false).expect("it starts"))
}

fn processes_in(identities: &BTreeSet<u64>) -> Vec<String> {
    let processes =
        fs::read_dir("/proc").expect("/proc").flatten().filter_map(|entry| entry.file_name().into_string().ok());
    processes
        .filter(|pid| fs::metadata(format!("/proc/{pid}/ns/net")).is_ok_and(|at| identities.contains(&at.ino())))
        .collect()
}

fn parent(pid: &str) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim().parse().ok()
}

/// Returns the state of the machine that a network could change.
fn machine_network_state() -> Vec<String> {
    let namespaces = fs::read_dir("/run/netns").map_or(0, |entries| entries.count());
    let read = |file: &str| fs::read_to_string(file).unwrap_or_default();
    vec![
        output_of(Command::new("ip").args(["-o", "link"])),
        output_of(Command::new("ip").args(["-o", "addr"])),
        output_of(Command::new("tc").args(["qdisc"])),
        read("/proc/sys/net/ipv4/tcp_wmem"),
        read("/proc/sys/net/ipv4/tcp_rmem"),
        read("/proc/sys/net/ipv4/ip_forward"),
        read("/proc/self/mountinfo"),
        namespaces.to_string(),
    ]
}

#[test]
fn each_pair_of_host_and_extra_rtt_has_a_namespace_and_each_flow_one_sender() {
    let mut experiment = experiment_with_a_far_flow();
    let mut third = experiment.flows[0].clone();
    third.name = "third".to_owned();
    experiment.flows.push(third);
    let mut network = Network::build(&experiment, LinkKind::Relay).expect("a network");
    let senders: Vec<_> = network.senders().iter().map(|place| (place.name.clone(), place.flows.clone())).collect();
    assert_eq!(senders, [("sender".to_owned(), vec![0, 2]), ("sender-2".to_owned(), vec![1])]);
    assert_eq!(network.senders()[1].extra_rtt, Span::from_millis(60));

    let (senders, receiver) = network.relay_ports();
    assert_eq!((senders[1].interface.as_str(), receiver.interface.as_str()), ("s2", "r0"));
    let link = run_in(&mut network, "sender-2", &["ip", "-o", "link", "show", "eth0"]);
    let mac = senders[1].mac.map(|byte| format!("{byte:02x}")).join(":");
    assert!(link.contains(&format!("link/ether {mac}")), "{link}");
    let address = run_in(&mut network, "sender-2", &["ip", "-o", "-4", "addr", "show", "eth0"]);
    assert!(address.contains(&format!("inet {}/24", senders[1].address)), "{address}");
    let neighbours = run_in(&mut network, "receiver", &["ip", "neigh"]);
    assert_eq!(neighbours.trim(), "10.77.0.1 dev eth0 lladdr 02:00:00:00:00:01 PERMANENT");
    network.close().expect("nothing is left");
}

#[test]
fn packets_keep_their_size_unless_offloads_are_enabled() {
    let mut experiment = experiment();
    for is_on in [false, true] {
        experiment.engine.offloads = is_on;
        let mut network = Network::build(&experiment, LinkKind::Relay).expect("a network");
        let expected = if is_on { "on" } else { "off" };
        for (namespace, interface) in [("sender", "eth0"), ("router", "s1"), ("router", "r0"), ("receiver", "eth0")] {
            let features = run_in(&mut network, namespace, &["ethtool", "-k", interface]);
            for offload in ["tcp-segmentation-offload", "tx-udp-segmentation"] {
                let line = format!("{offload}: {expected}");
                assert!(features.contains(&line), "{namespace} {interface}: {features}");
            }
        }
    }
}

#[test]
fn running_the_logged_commands_builds_the_same_network() {
    let network = Network::build(&experiment_with_a_far_flow(), LinkKind::Relay).expect("a network");
    let commands = network.commands().to_owned();
    let live = dump::live(network);
    let replayed = dump::replayed(&commands, &["sender", "sender-2", "receiver", "router"]);
    assert_eq!(live, replayed);
    // The comparison is effective: without one of its neighbour entries, the network differs.
    let neighbour = commands.lines().find(|line| line.contains("neigh add")).expect("a neighbour");
    let without = commands.replace(neighbour, "");
    assert_ne!(live, dump::replayed(&without, &["sender", "sender-2", "receiver", "router"]));
}

#[test]
fn the_log_shows_processes_and_notes_without_running_them() {
    let mut network = Network::build(&experiment(), LinkKind::Relay).expect("a network");
    run_in(&mut network, "sender", &["echo", "two words"]);
    network.note("nsenter --net=/run/netns/sender sysctl -w net.ipv4.tcp_no_metrics_save=1");
    assert!(
        network.commands().contains("\n# nsenter --net=/run/netns/sender echo 'two words'\n"),
        "{}",
        network.commands()
    );
    assert!(network.commands().ends_with("sysctl -w net.ipv4.tcp_no_metrics_save=1\n"), "{}", network.commands());
}

#[test]
fn an_unprivileged_user_gets_the_same_network() {
    let network = Network::build(&experiment(), LinkKind::Relay).expect("a network");
    let commands = network.commands().to_owned();
    let dump_as_root = dump::live(network);
    let answer = as_unprivileged(&json!({ "role": "network" }));
    assert_eq!(answer["commands"], json!(commands));
    assert_eq!(answer["dump"], json!(dump_as_root));
}

#[test]
fn an_unprivileged_user_may_use_every_algorithm_of_the_kernel() {
    let answer = as_unprivileged(&json!({ "role": "algorithms" }));
    assert!(answer["has"].as_array().is_some_and(|names| names.contains(&json!("reno"))), "{answer}");
    assert_eq!(answer["has"], answer["usable"]);
}

fn as_unprivileged(role: &Value) -> Value {
    if !rustix::process::geteuid().is_root() {
        return roles::report_from(&output_of(&mut roles::command(role)));
    }
    // A copy of the program that the user can read.
    let folder = tempfile::Builder::new().permissions(fs::Permissions::from_mode(0o755)).tempdir().expect("a folder");
    let copy = folder.path().join("test");
    fs::copy(std::env::current_exe().expect("the test's own file"), &copy).expect("a copy");
    fs::set_permissions(&copy, fs::Permissions::from_mode(0o755)).expect("it is made executable");
    let mut command = Command::new("setpriv");
    command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]);
    command.args(roles::words_with(copy.into(), role)).current_dir("/");
    roles::report_from(&output_of(&mut command))
}

#[test]
fn a_host_gets_the_configured_buffers_and_the_machine_keeps_its_own() {
    let before = machine_network_state();
    let mut network = Network::build(&experiment(), LinkKind::Relay).expect("a network");
    for namespace in ["sender", "receiver"] {
        let settings = network.sysctls(namespace);
        let applied = roles::play_in(&mut network, namespace, &json!({ "role": "sysctls", "settings": settings }));
        let send = applied["net.ipv4.tcp_wmem"].as_str().expect("set");
        assert!(send.ends_with(" 8000000"), "{send}");
        // The kernel's initial size is above this limit, so it is lowered to the limit.
        let receive = applied["net.ipv4.tcp_rmem"].as_str().expect("set");
        assert!(receive.ends_with(" 50000 50000"), "{receive}");
        let there = run_in(&mut network, namespace, &["cat", "/proc/sys/net/ipv4/tcp_rmem"]);
        assert_eq!(there.split_whitespace().collect::<Vec<_>>().join(" "), receive);
    }
    network.close().expect("nothing is left");
    assert_eq!(machine_network_state(), before);
}

#[test]
fn two_networks_at_once_do_not_see_each_other() {
    let before = machine_network_state();
    let mut networks: Vec<Network> = std::thread::scope(|scope| {
        let build = || Network::build(&experiment(), LinkKind::Relay).expect("a network");
        let builders: Vec<_> = (0..2).map(|_| scope.spawn(build)).collect();
        builders.into_iter().map(|builder| builder.join().expect("a network")).collect()
    });
    assert_eq!(machine_network_state(), before, "while they exist");
    run_in(&mut networks[0], "router", &["ip", "link", "delete", "s1"]);
    let links = run_in(&mut networks[1], "router", &["ip", "-o", "link"]);
    assert!(links.contains("s1@"), "{links}");
    for network in networks {
        network.close().expect("nothing is left");
    }
    assert_eq!(machine_network_state(), before, "afterwards");
}

#[test]
fn a_process_killed_while_it_holds_a_network_leaves_no_process_and_no_namespace() {
    let mut command = roles::command(&json!({ "role": "hold" }));
    let mut holder = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
    assert_eq!(roles::wait_for_report(&mut holder), json!("holding"));

    let own_namespace = fs::metadata("/proc/self/ns/net").expect("a namespace").ino();
    let pids = fs::read_dir("/proc").expect("/proc").flatten().filter_map(|entry| entry.file_name().into_string().ok());
    let children: Vec<String> = pids.filter(|pid| parent(pid) == Some(holder.id())).collect();
    let identity = |pid: &String| Some(fs::metadata(format!("/proc/{pid}/ns/net")).ok()?.ino());
    let identities: BTreeSet<u64> =
        children.iter().filter_map(identity).filter(|inode| *inode != own_namespace).collect();
    assert_eq!(identities.len(), 2, "the holder's own namespace and the host's: {children:?}");

    holder.kill().expect("it lives");
    holder.wait().expect("it ends");
    wait_until("the namespaces have no processes", || processes_in(&identities).is_empty());
    // A namespace without processes could remain if it was mounted.
    let mounts = fs::read_to_string("/proc/self/mountinfo").expect("mounts");
    assert!(identities.iter().all(|inode| !mounts.contains(&format!("net:[{inode}]"))), "{mounts}");
}

#[test]
fn a_dropped_network_leaves_nothing_behind() {
    let mut network = Network::build(&experiment(), LinkKind::Relay).expect("a network");
    let identity = run_in(&mut network, "sender", &["stat", "-L", "-c", "%i", "/proc/self/ns/net"]);
    let identities = BTreeSet::from([identity.trim().parse().expect("an inode")]);
    let host = roles::spawn_idle_host(&mut network);
    assert_eq!(processes_in(&identities), [host.id().to_string()]);
    drop(network);
    output_of_child(host);
    assert!(processes_in(&identities).is_empty());
}

#[test]
fn closing_names_a_process_that_is_still_running_and_how_to_end_it() {
    let mut network = Network::build(&experiment(), LinkKind::Relay).expect("a network");
    // This process ignores its standard input.
    let mut host = network.spawn("sender", &["sleep".into(), "60".into()], false).expect("it starts");
    let name = format!("/proc/{}/comm", host.id());
    wait_until("nsenter has become sleep", || fs::read_to_string(&name).is_ok_and(|comm| comm.trim() == "sleep"));
    let error = network.close().expect_err("a process is left");
    assert_eq!(error.code, "leftovers");
    assert!(error.message.contains(&format!("{} (sleep)", host.id())), "{error}");
    assert_eq!(error.hint, format!("kill {}", host.id()));
    host.kill().expect("it lives");
    host.wait().expect("it ends");
}

#[test]
fn disabled_namespaces_are_reported_with_the_sysctl() {
    assert_eq!(probe::namespaces(), Ok(()));
    for setting in ["max_user_namespaces", "max_net_namespaces"] {
        // The root of a user namespace sets its limits, and then drops its capabilities to be an unprivileged user.
        let play = "exec setpriv --inh-caps -all --bounding-set -all \"$@\"";
        let script = format!("echo 0 >/proc/sys/user/{setting}; {play}");
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "sh", "-ec", &script, "sh"]);
        command.args(roles::words(&json!({ "role": "namespaces" })));
        let error = roles::report_from(&output_of(&mut command));
        assert_eq!(error["code"], "no-namespaces", "{error}");
        let message = error["message"].as_str().expect("a text");
        assert!(message.contains(&format!("user.{setting} is 0")), "{message}");
        let hint = error["hint"].as_str().expect("a text");
        assert!(hint.contains(&format!("sudo sysctl -w user.{setting}=")), "{hint}");
    }
}

#[test]
fn a_missing_tool_is_reported_with_its_package() {
    let error = roles::report_from(&output_of(
        roles::command(&json!({ "role": "namespaces" })).env("PATH", "/nowhere:/usr/bin"),
    ));
    assert_eq!(error, Value::Null, "system folders are searched, too");
    let words = roles::words(&json!({ "role": "namespaces" }));
    let mut command = Command::new("/usr/bin/env");
    command.args(&words[1..2]).arg("PATH=/nowhere").args(&words[2..]);
    let error = roles::report_from(&output_of(&mut command));
    assert_eq!(error["code"], "no-tool", "{error}");
    assert!(error["hint"].as_str().is_some_and(|hint| hint.contains("apt-get install util-linux")), "{error}");
}

#[test]
fn kernel_features_are_probed() {
    let qdiscs = probe::qdiscs().unwrap();
    assert!(qdiscs.contains("pfifo") && qdiscs.contains("bfifo"), "{qdiscs:?}");
    assert!(probe::usable_algorithms().unwrap().contains(&"reno".to_owned()));
    assert!(probe::has_tool("ip") && !probe::has_tool("no-such-program"));
    let (link, why) = choose_link(&experiment(), &Traces::default()).expect("a link");
    assert_eq!((link, why.as_str()), (LinkKind::Relay, "it treats packets as the simulator does"));
}

#[test]
fn a_process_can_be_given_realtime_priority() {
    if !probe::is_realtime_allowed() {
        return cannot_run("SCHED_FIFO is refused here");
    }
    let mut network = Network::build(&experiment(), LinkKind::Relay).expect("a network");
    let words = ["sh", "-c", "chrt -p $$"].map(Into::into);
    let output = output_of_child(network.spawn("router", &words, true).expect("it starts"));
    assert!(output.contains("SCHED_FIFO") && output.contains("priority: 50"), "{output}");
}
