//! Negative controls: a modified controller deviates from the kernel where the modification first matters.

use crate::recording::{self, Call};
use crate::replay::{Deviation, replay};
use rand_core::Rng;
use std::collections::BTreeMap;
use thalweg_cc::{Ack, CaState, Conn, Controller, Window, build};
use thalweg_units::{Packets, Span};

/// Returns the first decision of a modified controller that differs from the kernel's, except for known deviations.
fn first_deviation(name: &str, controller: &mut dyn Controller) -> Deviation {
    let recording = recording::named(name);
    let outcome = replay(&recording, controller);
    let algorithm = &recording.header["algorithm"];
    let mut unknown = outcome.deviations.into_iter().filter(|it| crate::known::name(algorithm, it).is_none());
    unknown.next().unwrap_or_else(|| panic!("{name}: the changed controller decides as the kernel does"))
}

/// Returns the line of the first matching call.
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

/// Reno that reduces its window only by a quarter.
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

#[test]
fn a_changed_weight_of_dctcp_is_detected_at_the_end_of_the_first_window() {
    let deviation = first_deviation("dctcp-clean", changed("dctcp", "shift_g", 5.0).as_mut());
    let end = first_line("dctcp-clean", |call| call.produced("dctcp_alpha") < 1024);
    assert_eq!((deviation.line, deviation.name.as_str()), (end, "dctcp_alpha"), "{deviation}");
}

#[test]
fn a_dctcp_that_halves_its_window_on_marks_is_detected_when_linux_reduces_it_by_less() {
    let deviation = first_deviation("dctcp-clean", &mut ChangedDctcp::new(Change::HalvesOnMarks));
    let mark = first_line("dctcp-clean", |call| {
        call.name == "ssthresh" && call.produced("result") > (call.given("cwnd") / 2).max(2)
    });
    assert_eq!((deviation.line, deviation.name.as_str()), (mark, "result"), "{deviation}");
}

#[test]
fn a_dctcp_that_takes_losses_for_marks_is_detected_on_the_first_loss() {
    let deviation = first_deviation("dctcp-lossy", &mut ChangedDctcp::new(Change::TakesLossesForMarks));
    let loss = first_line("dctcp-lossy", |call| call.produced("ssthresh") < call.given("ssthresh") && call.is_loss());
    assert_eq!((deviation.line, deviation.name.as_str()), (loss, "ssthresh"), "{deviation}");
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    HalvesOnMarks,
    TakesLossesForMarks,
}

#[derive(Debug)]
struct ChangedDctcp {
    inner: Box<dyn Controller>,
    change: Change,
}

impl ChangedDctcp {
    fn new(change: Change) -> ChangedDctcp {
        ChangedDctcp { inner: build("dctcp", &BTreeMap::new()).unwrap(), change }
    }
}

impl Controller for ChangedDctcp {
    fn name(&self) -> &'static str {
        "changed"
    }

    fn on_established(&mut self, conn: &Conn, window: &mut Window, rng: &mut dyn Rng) {
        self.inner.on_established(conn, window, rng);
    }

    fn on_packets_acked(&mut self, conn: &Conn, packets: Packets, rtt: Option<Span>, window: &mut Window) {
        self.inner.on_packets_acked(conn, packets, rtt, window);
    }

    fn on_ack(&mut self, conn: &Conn, ack: &Ack, window: &mut Window, rng: &mut dyn Rng) {
        self.inner.on_ack(conn, ack, window, rng);
    }

    fn ssthresh(&mut self, conn: &Conn, window: &Window) -> Packets {
        let ssthresh = self.inner.ssthresh(conn, window);
        if self.change == Change::HalvesOnMarks { Packets(window.cwnd.0 / 2).max(Packets(2)) } else { ssthresh }
    }

    fn on_timeout(&mut self, conn: &Conn, window: &mut Window) {
        if self.change != Change::TakesLossesForMarks {
            self.inner.on_timeout(conn, window);
        }
    }

    fn on_state(&mut self, conn: &Conn, next: CaState, window: &mut Window, rng: &mut dyn Rng) {
        let before = *window;
        self.inner.on_state(conn, next, window, rng);
        if self.change == Change::TakesLossesForMarks {
            *window = before;
        }
    }
}
