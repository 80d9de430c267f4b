//! Negative controls: a controller with one modification deviates from the kernel at exactly the call where the
//! modification first matters.

use crate::recording::{self, Call};
use crate::replay::{Deviation, replay};
use rand_core::Rng;
use std::collections::BTreeMap;
use thalweg_cc::{Ack, Conn, Controller, Window, build};
use thalweg_units::Packets;

/// The first decision of a changed controller that differs from the kernel's, in the named recording. Differences of
/// the unchanged controller are excluded.
fn first_deviation(name: &str, controller: &mut dyn Controller) -> Deviation {
    let recording = recording::named(name);
    let outcome = replay(&recording, controller);
    let algorithm = &recording.header["algorithm"];
    let mut unknown = outcome.deviations.into_iter().filter(|it| crate::known::name(algorithm, it).is_none());
    unknown.next().unwrap_or_else(|| panic!("{name}: the changed controller decides as the kernel does"))
}

/// The line of the first matching call.
fn first_line(name: &str, shows: impl Fn(&Call<'_>) -> bool) -> usize {
    let recording = recording::named(name);
    recording.calls().find(|call| shows(call)).unwrap_or_else(|| panic!("{name}: no call shows it")).line
}

fn changed(name: &str, param: &str, value: f64) -> Box<dyn Controller> {
    build(name, &BTreeMap::from([(param.to_owned(), value)])).unwrap()
}

#[test]
fn a_changed_probing_gain_is_detected_in_the_first_probe_or_drain() {
    let deviation = first_deviation("bbr-clean", changed("bbr", "pacing_gain", 1.26).as_mut());
    let probe = first_line("bbr-clean", |call| call.produced("mode") == 2 && call.produced("cycle_idx") < 2);
    assert_eq!(
        (deviation.line, deviation.call.as_str(), deviation.name.as_str()),
        (probe, "cong_control", "pacing_rate")
    );
}

#[test]
fn a_changed_cwnd_gain_is_detected_on_the_first_ack_of_probe_bw() {
    let deviation = first_deviation("bbr-clean", changed("bbr", "cwnd_gain", 1.9).as_mut());
    let entry = first_line("bbr-clean", |call| call.produced("mode") == 2);
    assert_eq!((deviation.line, deviation.call.as_str()), (entry, "cong_control"));
}

#[test]
fn a_missing_policer_check_is_detected_on_the_first_loss() {
    let deviation = first_deviation("bbr-heavy-loss", changed("bbr", "policer_detection", 0.0).as_mut());
    let loss = first_line("bbr-heavy-loss", |call| call.is_ack() && call.given("losses") > 0);
    assert_eq!(deviation.line, loss, "{deviation}");
}

#[test]
fn a_missing_hystart_is_detected_with_its_first_rtt_sample() {
    let deviation = first_deviation("cubic-clean", changed("cubic", "hystart", 0.0).as_mut());
    let line = first_line("cubic-clean", |call| call.produced("found") == 1);
    assert!(deviation.line <= line && deviation.call == "pkts_acked", "{deviation}");
}

#[test]
fn a_reno_with_beta_three_quarters_is_detected_on_the_first_loss() {
    let deviation = first_deviation("reno-lossy", &mut Gentle(build("reno", &BTreeMap::new()).unwrap()));
    let loss = first_line("reno-lossy", |call| call.name == "ssthresh");
    assert_eq!((deviation.line, deviation.name.as_str()), (loss, "result"), "{deviation}");
}

/// Reno that lowers its window by a quarter only.
#[derive(Debug)]
struct Gentle(Box<dyn Controller>);

impl Controller for Gentle {
    fn name(&self) -> &'static str {
        "gentle"
    }

    fn on_ack(&mut self, conn: &Conn, ack: &Ack, window: &mut Window, rng: &mut dyn Rng) {
        self.0.on_ack(conn, ack, window, rng);
    }

    fn ssthresh(&mut self, conn: &Conn, window: &Window) -> Packets {
        self.0.ssthresh(conn, window);
        Packets(window.cwnd.0 * 3 / 4)
    }
}
