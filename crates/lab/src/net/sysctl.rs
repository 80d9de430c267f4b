//! Kernel settings: selects those that each host of an experiment needs, and applies them.
//!
//! Except in `raise_tcp_memory`, the applied settings belong to the network namespace of the calling process.

use crate::error::Error;
use crate::net::Place;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::{fs, io};
use thalweg_plan::plan::Experiment;
use thalweg_units::Bytes;

/// Settings that are skipped if the kernel does not have them.
pub const OPTIONAL: &[&str] = &[
    // Older kernels hide net.core from namespaces that an unprivileged user created.
    "net.core.somaxconn",
    // Needed only for large numbers of connections.
    "net.ipv4.tcp_tw_reuse",
    "net.ipv4.tcp_max_tw_buckets",
];

/// Applies kernel settings in this network namespace, and reads them back. Skips those in [`OPTIONAL`] that the kernel
/// does not have.
///
/// ```
/// use std::collections::BTreeMap;
/// use thalweg_lab::net::sysctl;
///
/// let unknown = BTreeMap::from([("net.ipv4.tcp_warp_speed".to_owned(), "9".to_owned())]);
/// let error = sysctl::apply(&unknown).expect_err("no kernel has it");
/// assert_eq!(error.code, "no-sysctl");
/// ```
///
/// # Errors
/// `no-sysctl`: one cannot be applied, or reads back differently.
pub fn apply(settings: &BTreeMap<String, String>) -> Result<BTreeMap<String, String>, Error> {
    let mut values = BTreeMap::new();
    for (name, value) in settings {
        let file = file(name);
        if !file.exists() && OPTIONAL.contains(&name.as_str()) {
            continue;
        }
        let refused = |error: io::Error| {
            Error::new(
                "no-sysctl",
                format!("the kernel setting {name} cannot be set to \"{value}\": {error}"),
                format!("check whether this kernel has it: cat {}", file.display()),
            )
        };
        fs::write(&file, value).map_err(refused)?;
        let now = words(&fs::read_to_string(&file).map_err(refused)?);
        if now != words(value) {
            return Err(refused(io::Error::other(format!("the kernel changed it to \"{now}\""))));
        }
        values.insert(name.clone(), now);
    }
    Ok(values)
}

/// Returns the value of a setting without surrounding white space; `None` if it cannot be read.
pub(crate) fn read(name: &str) -> Option<String> {
    Some(fs::read_to_string(file(name)).ok()?.trim().to_owned())
}

/// Raises the memory limits of all TCP connections, in pages. The kernel derives the default limits from its memory, so
/// a kernel with little memory would slow connections down. Only for guests: these limits belong to the kernel, not to
/// a namespace.
///
/// # Errors
/// If the kernel refuses.
pub(crate) fn raise_tcp_memory() -> io::Result<()> {
    fs::write(file("net.ipv4.tcp_mem"), "1000000000 1000000000 1000000000")
}

/// Returns the path of a setting below /proc/sys.
pub(crate) fn file(name: &str) -> PathBuf {
    PathBuf::from(format!("/proc/sys/{}", name.replace('.', "/")))
}

fn words(value: &str) -> String {
    value.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The kernel's default limits of a connection's buffers in a new namespace: minimum, initial and maximum size in
/// bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Defaults {
    pub rmem_bytes: [u64; 3],
    pub wmem_bytes: [u64; 3],
}

impl Defaults {
    /// Parses the contents of tcp_rmem and tcp_wmem, one line each.
    pub fn parse(text: &str) -> Option<Defaults> {
        let mut lines = text.lines().map(|line| -> Option<[u64; 3]> {
            let values: Vec<u64> = line.split_whitespace().map(str::parse).collect::<Result<_, _>>().ok()?;
            values.try_into().ok()
        });
        Some(Defaults { rmem_bytes: lines.next()??, wmem_bytes: lines.next()?? })
    }
}

/// Returns the settings of a host at an end of the path.
///
/// # Errors
/// `not-on-linux`: a buffer is too large. `not-honoured`: the flows of the host differ in `ecn`.
pub(crate) fn of_host(
    experiment: &Experiment,
    place: &Place,
    defaults: Defaults,
) -> Result<BTreeMap<String, String>, Error> {
    let mut settings = BTreeMap::new();
    let mut set = |name: &str, value: String| settings.insert(name.to_owned(), value);

    // The kernel's initial size is kept, unless the scenario's limit is smaller.
    if let Some(host) = experiment.hosts.get(&place.host) {
        let send = format!("host.{}.sndbuf_max", place.host);
        set("net.ipv4.tcp_wmem", limits(defaults.wmem_bytes, host.sndbuf_max_bytes, &send)?);
        let receive = format!("host.{}.rcvbuf_max", place.host);
        set("net.ipv4.tcp_rmem", limits(defaults.rmem_bytes, host.rcvbuf_max_bytes, &receive)?);
    }
    if let Some(ecn) = ecn(experiment, place)? {
        set("net.ipv4.tcp_ecn", ecn.to_owned());
    }
    // Connections do not start with metrics (ssthresh, RTT) of earlier connections to the same address, as in the
    // simulator.
    set("net.ipv4.tcp_no_metrics_save", "1".to_owned());
    // Above this number of connections in TIME-WAIT, the kernel skips this state with a warning in its log. The default
    // depends on the machine's memory.
    set("net.ipv4.tcp_max_tw_buckets", "262144".to_owned());
    if place.is_receiver() || !place.receives.is_empty() {
        // Limits of unaccepted connections and of handshakes. Above these limits the kernel drops SYNs or sends SYN
        // cookies; of many flows that start together, some would wait for the retransmission of their SYN.
        set("net.core.somaxconn", "65535".to_owned());
        set("net.ipv4.tcp_max_syn_backlog", "65535".to_owned());
    }
    if !place.is_receiver() || !place.flows.is_empty() {
        // Permits more concurrent connections from one sender than the default.
        set("net.ipv4.ip_local_port_range", "10000 65000".to_owned());
        // A port whose connection closed more than a second ago may be reused: timestamps distinguish the two
        // connections.
        set("net.ipv4.tcp_tw_reuse", "1".to_owned());
    }
    Ok(settings)
}

/// Returns whether connections that a host opens request ECN, as a value of net.ipv4.tcp_ecn: 1 if they do; 2, Linux's
/// default, if they only accept it. Algorithms that need ECN, such as dctcp, always request it. `None` for a host that
/// sends no flow's data.
///
/// # Errors
/// `not-honoured`: some of the flows whose data the host sends request ECN and others do not.
fn ecn(experiment: &Experiment, place: &Place) -> Result<Option<&'static str>, Error> {
    let mut asks = place.flows.iter().map(|flow| experiment.flows[*flow].ecn);
    let Some(first) = asks.next() else { return Ok(None) };
    if asks.any(|other| other != first) {
        let host = &place.host;
        return Err(Error::new(
            "not-honoured",
            format!(
                "host.{host}: some of its flows have `ecn = true` and others do not, but Linux has one setting per host"
            ),
            "use different hosts for these flows, or the same `ecn`",
        ));
    }
    Ok(Some(if first { "1" } else { "2" }))
}

/// Returns the settings of a router that forwards packets through queue disciplines; `interfaces` are the router's own.
pub(crate) fn of_router(interfaces: &[String], is_ipv6: bool) -> BTreeMap<String, String> {
    let mut settings = BTreeMap::from([("net.ipv4.ip_forward".to_owned(), "1".to_owned())]);
    if is_ipv6 {
        settings.insert("net.ipv6.conf.all.forwarding".to_owned(), "1".to_owned());
    }
    let everywhere = ["all".to_owned()];
    for interface in interfaces.iter().chain(&everywhere) {
        // The source address check costs a lookup per packet. The larger value of `all` and the interface applies, so
        // both are set.
        settings.insert(format!("net.ipv4.conf.{interface}.rp_filter"), "0".to_owned());
        // ICMP redirects would be additional packets in the experiment's queues. They are sent if either value is 1.
        settings.insert(format!("net.ipv4.conf.{interface}.send_redirects"), "0".to_owned());
    }
    settings
}

fn limits(defaults_bytes: [u64; 3], most: Bytes, key: &str) -> Result<String, Error> {
    let most_bytes = most.0;
    if i32::try_from(most_bytes).is_err() {
        return Err(Error::new(
            "not-on-linux",
            format!("`{key}` is {most_bytes} bytes, but Linux supports at most {}", i32::MAX),
            format!("remove `{key}` from the scenario: the buffer is then not limited"),
        ));
    }
    let [least, first, _] = defaults_bytes;
    Ok(format!("{} {} {most_bytes}", least.min(most_bytes), first.min(most_bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KERNEL_BYTES: [u64; 3] = [4096, 131_072, 33_554_432];

    #[test]
    fn the_kernels_first_two_values_stay_below_the_scenarios_limit() {
        assert_eq!(limits(KERNEL_BYTES, Bytes(8_000_000), "k").as_deref(), Ok("4096 131072 8000000"));
        assert_eq!(limits(KERNEL_BYTES, Bytes(50_000), "k").as_deref(), Ok("4096 50000 50000"));
        assert_eq!(limits(KERNEL_BYTES, Bytes(2304), "k").as_deref(), Ok("2304 2304 2304"));
    }

    #[test]
    fn a_limit_beyond_the_kernel_integer_range_is_an_error_that_names_the_key() {
        let error = limits(KERNEL_BYTES, Bytes(1 << 31), "host.sender.sndbuf_max").expect_err("too large");
        assert!(error.message.contains("`host.sender.sndbuf_max` is 2147483648 bytes"), "{error}");
    }

    #[test]
    fn a_host_enables_ecn_if_its_flows_do_and_flows_that_differ_are_an_error() {
        let text = include_str!("../../../sim/tests/data/one-cubic-flow.json");
        let mut experiment: Experiment = serde_json::from_str(text).expect("an experiment");
        let of_sender = |experiment: &Experiment| {
            let (senders, receiver) = crate::net::places::places(experiment).expect("places");
            assert_eq!(ecn(experiment, &receiver), Ok(None), "it opens no connection");
            ecn(experiment, &senders[0])
        };
        assert_eq!(of_sender(&experiment), Ok(Some("2")));
        experiment.flows[0].ecn = true;
        assert_eq!(of_sender(&experiment), Ok(Some("1")));
        let other = thalweg_plan::plan::Flow { ecn: false, ..experiment.flows[0].clone() };
        experiment.flows.push(other);
        let error = of_sender(&experiment).expect_err("Linux has one setting");
        assert_eq!(error.code, "not-honoured");
        assert!(error.message.starts_with("host.sender: "), "{error}");
    }

    #[test]
    fn tab_separated_sysctl_defaults_are_parsed() {
        let read = Defaults::parse("4096\t131072\t6291456\n4096\t16384\t4194304\n");
        assert_eq!(
            read,
            Some(Defaults { rmem_bytes: [4096, 131_072, 6_291_456], wmem_bytes: [4096, 16_384, 4_194_304] })
        );
        assert_eq!(Defaults::parse("4096 131072\n"), None);
    }
}
