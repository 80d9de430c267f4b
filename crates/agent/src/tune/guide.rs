//! `tune --guide`: reports other settings of this machine that affect its connections, with reasons.

use super::arms::NEED_ECN;
use super::arms::Offer;
use crate::show::words::{bytes, short};
use serde::Serialize;
use std::fmt::Write;
use std::fs;
use std::process::Command;

/// Bandwidth-delay product that a server should fill with one connection, in bytes: 1 Gbit/s, 100 ms.
const PATH_BYTES: u64 = 1_000_000_000 / 8 / 10;

/// Buffer bytes per window byte: the overhead of sk_buffs counts against the buffer and can take half of it.
const BUFFER_PER_WINDOW: u64 = 2;

/// Recommended limit of unsent data in the send buffer, in bytes.
const LOWAT_BYTES: u64 = 131_072;

/// Result of the check of a setting.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    /// Name of the setting.
    pub name: &'static str,
    /// Current value; empty if this kernel does not have the setting.
    pub found: Option<String>,
    /// Whether the value is adequate or unknown.
    pub is_good: bool,
    /// Reason why the setting matters.
    pub why: String,
    /// How to change it; empty if the value is adequate or no command changes it.
    pub how: Option<String>,
}

/// Properties of a machine that the guide reads.
pub trait Machine {
    /// Returns a setting below /proc/sys.
    fn setting(&self, name: &str) -> Option<String>;
    /// Returns the available algorithms.
    fn offer(&self) -> Option<Offer>;
    /// Returns pairs of a network interface and a queue discipline.
    fn disciplines(&self) -> Option<Vec<(String, String)>>;
    /// Returns the share of steal time since boot: time in which the hypervisor ran other guests.
    fn stolen(&self) -> Option<f64>;
}

/// The machine that the agent runs on.
pub struct This;

impl Machine for This {
    fn setting(&self, name: &str) -> Option<String> {
        let text = fs::read_to_string(format!("/proc/sys/{}", name.replace('.', "/"))).ok()?;
        Some(text.split_whitespace().collect::<Vec<_>>().join(" "))
    }

    fn offer(&self) -> Option<Offer> {
        Offer::read().ok()
    }

    fn disciplines(&self) -> Option<Vec<(String, String)>> {
        let output =
            Command::new("tc").args(["qdisc", "show"]).output().ok().filter(|output| output.status.success())?;
        Some(disciplines(&String::from_utf8_lossy(&output.stdout)))
    }

    fn stolen(&self) -> Option<f64> {
        stolen(&fs::read_to_string("/proc/stat").ok()?)
    }
}

/// Parses the output of `tc qdisc show`. Omits noqueue, mq, ingress and clsact, which hold no packets.
fn disciplines(text: &str) -> Vec<(String, String)> {
    let mut qdiscs: Vec<(String, String)> = Vec::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let ["qdisc", kind, _, "dev", device, ..] = words[..] else { continue };
        let qdisc = (device.to_owned(), kind.to_owned());
        if !["noqueue", "mq", "ingress", "clsact"].contains(&kind) && !qdiscs.contains(&qdisc) {
            qdiscs.push(qdisc);
        }
    }
    qdiscs
}

/// Parses the steal share: the eighth number of the line `cpu` over the sum of the first eight (proc_stat(5)).
fn stolen(stat: &str) -> Option<f64> {
    let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let times: Vec<u64> = line.split_whitespace().map_while(|number| number.parse().ok()).take(8).collect();
    let all: u64 = times.iter().sum();
    (times.len() == 8 && all > 0).then(|| times[7] as f64 / all as f64)
}

/// Checks all settings.
pub fn checks(machine: &dyn Machine) -> Vec<Check> {
    let mut checks = Vec::new();
    checks.extend(algorithms(machine));
    checks.push(buffer(machine, "net.ipv4.tcp_wmem", "send buffer", "may be in flight"));
    checks.push(buffer(machine, "net.ipv4.tcp_rmem", "receive buffer", "may be in flight to this host"));
    checks.extend(queues(machine));
    checks.push(number(
        machine,
        "net.ipv4.tcp_slow_start_after_idle",
        &|value| value == 0,
        "After an idle period, algorithms other than BBR reduce the window, down to the initial one, so that \
         responses on persistent connections begin slowly.",
        "0",
    ));
    checks.push(number(
        machine,
        "net.ipv4.tcp_notsent_lowat",
        &|value| value <= 4 * LOWAT_BYTES,
        "Unsent data in the kernel takes memory, and delays more urgent data that is written after it (HTTP/2).",
        &LOWAT_BYTES.to_string(),
    ));
    checks.push(number(
        machine,
        "net.ipv4.tcp_no_metrics_save",
        &|value| value == 1,
        "New connections inherit the reordering and the retransmission timeout of earlier ones to the same address, \
         whatever their algorithm, and with net.ipv4.tcp_no_ssthresh_metrics_save = 0 their slow-start threshold, \
         which distorts the comparison.",
        "1",
    ));
    checks.push(number(
        machine,
        "net.core.bpf_jit_enable",
        &|value| value > 0,
        "eBPF programs take several times as long without the JIT compiler.",
        "1",
    ));
    checks.extend(cpu(machine));
    checks
}

fn algorithms(machine: &dyn Machine) -> Vec<Check> {
    let Some(offer) = machine.offer() else { return Vec::new() };
    let has_bbr = offer.available.iter().any(|name| name.starts_with("bbr"));
    let names = Check {
        name: "algorithms",
        found: Some(format!("{}; default {}", offer.available.join(", "), offer.default)),
        is_good: has_bbr,
        why: "Loss-based algorithms are slow on paths with random loss or small buffers; without BBR there is little \
              to choose from."
            .to_owned(),
        how: (!has_bbr).then(|| {
            "sudo modprobe tcp_bbr; to load it at each boot: echo tcp_bbr | sudo tee \
                                 /etc/modules-load.d/tcp_bbr.conf"
                .to_owned()
        }),
    };
    let kept: Vec<&str> = offer
        .available
        .iter()
        .filter(|name| !offer.allowed.contains(name) && **name != offer.default && !NEED_ECN.contains(&name.as_str()))
        .map(String::as_str)
        .collect();
    let allowed = Check {
        name: "net.ipv4.tcp_allowed_congestion_control",
        found: Some(offer.allowed.join(" ")),
        is_good: kept.is_empty(),
        why: "Algorithms that ordinary users may not set are used only if --arms names them.".to_owned(),
        how: (!kept.is_empty()).then(|| format!("thalweg-agent tune --arms {},{} ...", offer.default, kept.join(","))),
    };
    vec![names, allowed]
}

fn buffer(machine: &dyn Machine, name: &'static str, what: &str, verb: &str) -> Check {
    let text = machine.setting(name);
    let most = text.as_deref().and_then(|text| text.split(' ').nth(2)).and_then(|most| most.parse::<u64>().ok());
    let wanted = (PATH_BYTES * BUFFER_PER_WINDOW).next_multiple_of(1 << 20);
    let window = most.unwrap_or(0) / BUFFER_PER_WINDOW;
    let rate = short(8.0 * window as f64 / 0.1);
    let parts: Vec<&str> = text.as_deref().map(|text| text.split(' ').collect()).unwrap_or_default();
    let how = match parts[..] {
        [least, usual, _] => Some(format!("sudo sysctl -w {name}=\"{least} {usual} {wanted}\"")),
        _ => None,
    };
    let is_good = most.is_none_or(|most| most >= wanted);
    Check {
        name,
        is_good,
        why: format!(
            "As little as half of the largest {what} holds payload: {} {verb}, which limits a connection to \
             {rate}bit/s at an RTT of 100 ms, whatever its algorithm.",
            bytes(window)
        ),
        how: how.filter(|_| !is_good),
        found: text,
    }
}

fn queues(machine: &dyn Machine) -> Vec<Check> {
    let why = "BBR paces its packets. fq does that for all connections with one timer; without fq, each connection has \
               its own timer, which costs CPU on a server with many connections and paces less evenly.";
    let default = machine.setting("net.core.default_qdisc");
    let qdiscs = machine.disciplines().filter(|qdiscs| !qdiscs.is_empty());
    match qdiscs {
        Some(qdiscs) => {
            let others: Vec<&(String, String)> = qdiscs.iter().filter(|(_, kind)| kind != "fq").collect();
            let how = others.first().map(|(device, _)| {
                format!(
                    "sudo tc qdisc replace dev {device} root fq (below mq: for each queue); for new interfaces: sudo \
                     sysctl -w net.core.default_qdisc=fq"
                )
            });
            let names: Vec<String> = qdiscs.iter().map(|(device, kind)| format!("{device} {kind}")).collect();
            vec![Check {
                name: "queue disciplines",
                found: Some(names.join(", ")),
                is_good: others.is_empty(),
                why: why.to_owned(),
                how,
            }]
        }
        None => {
            let is_good = default.as_deref().is_none_or(|kind| kind == "fq");
            let how = (!is_good).then(|| {
                "sudo sysctl -w net.core.default_qdisc=fq; it applies to interfaces that come up later".to_owned()
            });
            vec![Check { name: "net.core.default_qdisc", found: default, is_good, why: why.to_owned(), how }]
        }
    }
}

fn number(machine: &dyn Machine, name: &'static str, is_good: &dyn Fn(u64) -> bool, why: &str, wanted: &str) -> Check {
    let value = machine.setting(name);
    let is_good = value.as_deref().and_then(|text| text.parse().ok()).is_none_or(is_good);
    let how = (!is_good).then(|| format!("sudo sysctl -w {name}={wanted}"));
    Check { name, found: value, is_good, why: why.to_owned(), how }
}

fn cpu(machine: &dyn Machine) -> Option<Check> {
    let share = machine.stolen()?;
    let has_rule = machine.offer().is_some_and(|offer| offer.available.iter().any(|name| name == "bbr_cpu"));
    let is_good = share < 0.02 || has_rule;
    Some(Check {
        name: "CPU",
        found: Some(format!(
            "{:.1} % of the CPU time since boot went to other virtual machines (steal)",
            100.0 * share
        )),
        is_good,
        why:
            "While the hypervisor runs other guests, stock BBR loses throughput and does not recover it; bbr_cpu does."
                .to_owned(),
        how: (!is_good).then(|| {
            "sudo thalweg-agent cc load bbr_cpu --keep; `thalweg doctor --live` measures the effect".to_owned()
        }),
    })
}

/// Returns the results of all checks as text or JSON.
pub fn guide(machine: &dyn Machine, json: bool) -> String {
    let checks = checks(machine);
    if json {
        return format!("{:#}\n", serde_json::json!({ "checks": checks }));
    }
    let mut text = String::new();
    for check in &checks {
        let mark = match (&check.found, check.is_good) {
            (None, _) => "-",
            (_, true) => "good",
            (_, false) => "check",
        };
        let found = check.found.as_deref().unwrap_or("this kernel does not have it");
        writeln!(text, "{mark:<5} {}: {found}", check.name).expect("a string grows");
        if !check.is_good {
            writeln!(text, "      {}", check.why).expect("a string grows");
            if let Some(how) = &check.how {
                writeln!(text, "      {how}").expect("a string grows");
            }
        }
    }
    let open = checks.iter().filter(|check| !check.is_good).count();
    let last = match open {
        0 => "no setting to check; nothing was changed\n".to_owned(),
        1 => "1 setting to check; nothing was changed\n".to_owned(),
        n => format!("{n} settings to check; nothing was changed\n"),
    };
    text + &last
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    struct MadeUp {
        settings: BTreeMap<&'static str, &'static str>,
        available: &'static str,
        disciplines: Option<&'static str>,
        stat: &'static str,
    }

    impl Machine for MadeUp {
        fn setting(&self, name: &str) -> Option<String> {
            self.settings.get(name).map(|&value| value.to_owned())
        }

        fn offer(&self) -> Option<Offer> {
            let names = |text: &str| text.split(' ').map(str::to_owned).collect();
            Some(Offer { available: names(self.available), allowed: names("reno cubic"), default: "cubic".to_owned() })
        }

        fn disciplines(&self) -> Option<Vec<(String, String)>> {
            self.disciplines.map(disciplines)
        }

        fn stolen(&self) -> Option<f64> {
            stolen(self.stat)
        }
    }

    fn stock() -> MadeUp {
        MadeUp {
            settings: BTreeMap::from([
                ("net.ipv4.tcp_wmem", "4096 16384 4194304"),
                ("net.ipv4.tcp_rmem", "4096 131072 6291456"),
                ("net.ipv4.tcp_slow_start_after_idle", "1"),
                ("net.ipv4.tcp_notsent_lowat", "4294967295"),
                ("net.ipv4.tcp_no_metrics_save", "0"),
                ("net.core.bpf_jit_enable", "1"),
            ]),
            available: "reno cubic",
            disciplines: Some(
                "qdisc noqueue 0: dev lo root refcnt 2\nqdisc fq_codel 0: dev eth0 root refcnt 2 limit 10240p\n",
            ),
            stat: "cpu  100 0 100 700 0 0 0 100 0 0\n",
        }
    }

    fn names(machine: &MadeUp) -> Vec<&'static str> {
        checks(machine).into_iter().filter(|check| !check.is_good).map(|check| check.name).collect()
    }

    #[test]
    fn guidance_for_a_stock_machine_names_the_problems_and_the_commands() {
        let expected = [
            "algorithms",
            "net.ipv4.tcp_wmem",
            "net.ipv4.tcp_rmem",
            "queue disciplines",
            "net.ipv4.tcp_slow_start_after_idle",
            "net.ipv4.tcp_notsent_lowat",
            "net.ipv4.tcp_no_metrics_save",
            "CPU",
        ];
        assert_eq!(names(&stock()), expected);
        let text = guide(&stock(), false);
        for part in [
            "limits a connection to 168Mbit/s",
            "sudo sysctl -w net.ipv4.tcp_wmem=\"4096 16384 25165824\"",
            "tc qdisc replace dev eth0 root fq",
            "good  net.core.bpf_jit_enable: 1\n",
            "10.0 % of the CPU time since boot",
            "8 settings to check; nothing was changed\n",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    #[test]
    fn guidance_for_a_well_configured_machine_reports_no_problems() {
        let mut machine = stock();
        machine.available = "reno cubic bbr bbr_cpu";
        machine.disciplines = Some("qdisc mq 0: dev eth0 root\nqdisc fq 0: dev eth0 parent :1 limit 10000p\n");
        machine.settings = BTreeMap::from([
            ("net.ipv4.tcp_wmem", "4096 16384 33554432"),
            ("net.ipv4.tcp_rmem", "4096 131072 33554432"),
            ("net.ipv4.tcp_slow_start_after_idle", "0"),
            ("net.ipv4.tcp_notsent_lowat", "131072"),
            ("net.ipv4.tcp_no_metrics_save", "1"),
        ]);
        assert_eq!(names(&machine), ["net.ipv4.tcp_allowed_congestion_control"]);
        assert!(guide(&machine, false).contains("--arms cubic,bbr,bbr_cpu"));
        assert!(guide(&machine, false).contains("-     net.core.bpf_jit_enable: this kernel does not have it"));
        let json: serde_json::Value = serde_json::from_str(&guide(&machine, true)).unwrap();
        assert_eq!(json["checks"][2]["name"], "net.ipv4.tcp_wmem");
    }
}
