//! Prometheus metrics of tuning, in addition to those of the records.

use super::decision_engine::DecisionEngine;
use crate::flow::reason::Reason;
use prometheus::core::Collector;
use prometheus::proto::MetricFamily;
use prometheus::{Gauge, GaugeVec, IntCounterVec, IntGaugeVec, Opts, Registry};
use std::collections::BTreeMap;
use thalweg_policy::Prefix;

/// Builds all metric families from the current state.
pub fn families(engine: &DecisionEngine, is_state_failing: bool) -> Vec<MetricFamily> {
    let registry = Registry::new();
    let gauge = |name: &str, about: &str, value: f64| {
        registered(&registry, Gauge::new(format!("thalweg_tune_{name}"), about)).set(value);
    };
    let options = |name: &str, about: &str| Opts::new(format!("thalweg_tune_{name}"), about);
    let closed = options("connections_total", "Closed connections, by congestion control and by assignment.");
    let closed = registered(&registry, IntCounterVec::new(closed, &["cc", "assignment"]));
    let preferring =
        options("destinations_preferring", "Destinations for which most new connections get this congestion control.");
    let preferring = registered(&registry, IntGaugeVec::new(preferring, &["cc"]));
    let mut preferred: BTreeMap<&str, i64> = BTreeMap::new();
    let mut destinations = 0;
    for guard in engine.namespaces.values().filter_map(|namespace| namespace.guard.as_ref()) {
        for (prefix, _) in guard.destinations() {
            destinations += 1;
            if let Some(arm) = guard.preferred(prefix) {
                *preferred.entry(&engine.setup.arms.arm(arm).name).or_default() += 1;
            }
        }
    }
    for (reason, cc, count) in engine.closed.iter() {
        closed.with_label_values(&[cc, reason.assignment().unwrap_or_default()]).inc_by(count);
    }
    decisions(engine, &registry);
    for (_, what) in engine.setup.arms.iter() {
        for assignment in ["treated", "held_out", "untouched"] {
            closed.with_label_values(&[&what.name, assignment]).inc_by(0);
        }
        let count = preferred.get(what.name.as_str()).copied().unwrap_or(0);
        preferring.with_label_values(&[what.name.as_str()]).set(count);
    }
    let changes = options("changes_total", "Changes of the decisions, by kind.");
    let changes = registered(&registry, IntCounterVec::new(changes, &["change"]));
    for (kind, count) in engine.log.counts() {
        changes.with_label_values(&[kind]).inc_by(count);
    }
    differences(engine, &registry);
    gauge("destinations", "Known destinations.", f64::from(destinations));
    gauge("cpu_limited", "1 while the host is short of CPU.", f64::from(u8::from(engine.host.is_cpu_limited)));
    gauge("dry_run", "1 in a dry run, in which no algorithm is set.", f64::from(u8::from(engine.setup.is_dry_run)));
    gauge(
        "left_out",
        "Algorithms that the kernel refused to set, and that are no longer chosen.",
        engine.left_out.len() as f64,
    );
    let failing = f64::from(u8::from(is_state_failing || engine.trouble().is_some()));
    gauge(
        "failing",
        "1 while the kernel rejects a row of probabilities, or the learned state cannot be written.",
        failing,
    );
    registry.gather()
}

/// Registers the decisions of the BPF program. Reasons that have not occurred count 0.
fn decisions(engine: &DecisionEngine, registry: &Registry) {
    let about = "Opened connections, by decision and by chosen congestion control.";
    let options = Opts::new("thalweg_tune_decisions_total", about);
    let decisions = registered(registry, IntCounterVec::new(options, &["reason", "cc"]));
    for reason in Reason::ALL {
        let names_arm = matches!(reason, Reason::Treated | Reason::Override | Reason::Refused);
        let arms = engine.setup.arms.iter().filter(|_| names_arm).map(|(_, arm)| arm.name.as_str());
        let none = (!names_arm).then_some("");
        arms.chain(none).for_each(|cc| decisions.with_label_values(&[reason.name(), cc]).inc_by(0));
    }
    for (&(reason, arm), &count) in &engine.decisions {
        let cc = arm.map_or("", |arm| engine.setup.arms.arm(arm).name.as_str());
        decisions.with_label_values(&[reason.name(), cc]).inc_by(count);
    }
}

/// Registers the gain of chosen over held-out connections, for the agent's own network namespace.
fn differences(engine: &DecisionEngine, registry: &Registry) {
    let about = "Gain of connections with a chosen algorithm over held-out ones, as a difference of natural \
                 logarithms: 0.1 is about 10 % of the time or the rate.";
    let options = Opts::new("thalweg_tune_reward_difference", about);
    let gauge = registered(registry, GaugeVec::new(options, &["ip_version", "value"]));
    let Some(guard) = engine.namespaces.get(&engine.own).and_then(|namespace| namespace.guard.as_ref()) else { return };
    for (version, root) in [("4", "0.0.0.0/0"), ("6", "::/0")] {
        let root: Prefix = root.parse().expect("a prefix");
        if let Some(difference) = guard.difference(root) {
            for (name, value) in [("mean", difference.mean), ("low", difference.low), ("high", difference.high)] {
                gauge.with_label_values(&[version, name]).set(value);
            }
        }
    }
}

/// Registers a metric. Its name is a constant, so that an invalid or repeated one is a bug.
fn registered<C: Collector + Clone + 'static>(registry: &Registry, created: prometheus::Result<C>) -> C {
    let collector = created.expect("valid names");
    registry.register(Box::new(collector.clone())).expect("a name of its own");
    collector
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tune::decision_engine::tests::{at, engine, learn};
    use crate::tune::fake_kernel::FakeKernel;
    use prometheus::TextEncoder;
    use std::collections::BTreeSet;

    /// Returns the metrics page of an agent that has data about one destination.
    fn page() -> String {
        let (mut engine, mut kernel) = (engine(&[], ""), FakeKernel::default());
        kernel.decisions =
            [((Reason::Private, None), 3), ((Reason::Override, engine.setup.arms.find("bbr")), 2)].into();
        learn(&mut engine, &mut kernel, "192.0.2.0/24", 60, [400.0, 100.0]);
        for (reason, cc, times) in
            [(Reason::Treated, "bbr", 40), (Reason::HeldOut, "cubic", 20), (Reason::Application, "vegas", 1)]
        {
            (0..times).for_each(|_| engine.count(7, "192.0.2.1".parse().ok(), reason, &cc.into(), at(60.0)));
        }
        TextEncoder::new().encode_to_string(&families(&engine, false)).unwrap()
    }

    #[test]
    fn selections_and_their_effect_are_counted() {
        let page = page();
        for line in [
            "thalweg_tune_connections_total{assignment=\"treated\",cc=\"bbr\"} 40",
            "thalweg_tune_connections_total{assignment=\"held_out\",cc=\"cubic\"} 20",
            "thalweg_tune_connections_total{assignment=\"untouched\",cc=\"vegas\"} 1",
            "thalweg_tune_decisions_total{cc=\"\",reason=\"private\"} 3",
            "thalweg_tune_decisions_total{cc=\"\",reason=\"loopback\"} 0",
            "thalweg_tune_decisions_total{cc=\"bbr\",reason=\"override\"} 2",
            "thalweg_tune_destinations_preferring{cc=\"bbr\"} 1",
            "thalweg_tune_destinations 1",
            "thalweg_tune_failing 0",
        ] {
            assert!(page.lines().any(|printed| printed == line), "{line}: {page}");
        }
        let mean = page
            .lines()
            .find_map(|line| line.strip_prefix("thalweg_tune_reward_difference{ip_version=\"4\",value=\"mean\"} "));
        // The gain is a factor of four: the arms differ only in their completion times.
        assert!((mean.unwrap().parse::<f64>().unwrap() - 4f64.ln()).abs() < 0.2, "{page}");
    }

    #[test]
    fn the_reference_page_names_every_metric_and_no_other() {
        let page = page();
        let name = |line: &str| line.strip_prefix("# TYPE ")?.split(' ').next().map(str::to_owned);
        let exported: BTreeSet<String> = page.lines().filter_map(name).collect();
        let reference = include_str!("../../../../docs/reference/agent.md");
        let (_, section) = reference.split_once("\n## Metrics\n").expect("a section on metrics");
        let (section, _) = section.split_once("\n## ").expect("another section");
        let documented = section.split('`').filter(|word| word.starts_with("thalweg_tune_")).map(str::to_owned);
        assert_eq!(exported, documented.collect());
    }
}
