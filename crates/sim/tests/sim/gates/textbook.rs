//! Textbook controllers in floating point, which show that a gate accepts only the right constants.

use rand_core::Rng;
use thalweg_cc::{Ack, Conn, Controller, Window};
use thalweg_units::{Packets, Span, Time};

/// Additive increase by `alpha` segments per round trip, multiplicative decrease to `beta`.
#[derive(Debug)]
pub struct Aimd {
    pub alpha: f64,
    pub beta: f64,
    /// The fraction of a segment by which cwnd is below its exact value.
    credit: f64,
}

impl Aimd {
    pub fn boxed(alpha: f64, beta: f64) -> Box<Aimd> {
        Box::new(Aimd { alpha, beta, credit: 0.0 })
    }
}

fn slow_start(ack: &Ack, window: &mut Window) -> bool {
    let is_in = window.is_in_slow_start();
    if is_in {
        window.cwnd = (window.cwnd + ack.acked).min(window.ssthresh);
    }
    is_in
}

/// Raises cwnd by `growth` segments: whole segments now, and the remainder later.
fn grow(window: &mut Window, credit: &mut f64, growth: f64) {
    *credit += growth;
    let packets = credit.floor().max(0.0);
    *credit -= packets;
    window.cwnd += Packets(packets as u64);
}

impl Controller for Aimd {
    fn name(&self) -> &'static str {
        "aimd"
    }

    fn on_ack(&mut self, _: &Conn, ack: &Ack, window: &mut Window, _: &mut dyn Rng) {
        if !slow_start(ack, window) {
            let growth = self.alpha * ack.acked.0 as f64 / window.cwnd.0 as f64;
            grow(window, &mut self.credit, growth);
        }
    }

    fn ssthresh(&mut self, _: &Conn, window: &Window) -> Packets {
        self.credit = 0.0;
        Packets(((window.cwnd.0 as f64 * self.beta) as u64).max(2))
    }
}

#[derive(Debug)]
pub struct TextbookCubic {
    c: f64,
    beta: f64,
    /// The window at the latest loss, after fast convergence.
    w_max: f64,
    cwnd_prior: f64,
    epoch: Option<Epoch>,
    credit: f64,
}

#[derive(Debug)]
struct Epoch {
    start: Time,
    k: f64,
    w_max: f64,
    /// Reno's window.
    w_est: f64,
}

impl TextbookCubic {
    pub fn boxed(c: f64, beta: f64) -> Box<TextbookCubic> {
        Box::new(TextbookCubic { c, beta, w_max: 0.0, cwnd_prior: 0.0, epoch: None, credit: 0.0 })
    }
}

impl Controller for TextbookCubic {
    fn name(&self) -> &'static str {
        "textbook-cubic"
    }

    fn on_ack(&mut self, conn: &Conn, ack: &Ack, window: &mut Window, _: &mut dyn Rng) {
        if slow_start(ack, window) {
            return;
        }
        let (c, beta, prior, w_max) = (self.c, self.beta, self.cwnd_prior, self.w_max);
        let cwnd = window.cwnd.0 as f64;
        let epoch = self.epoch.get_or_insert_with(|| Epoch {
            start: conn.now,
            k: ((w_max - cwnd).max(0.0) / c).cbrt(),
            w_max: w_max.max(cwnd),
            w_est: cwnd,
        });
        let alpha = if epoch.w_est < prior { 3.0 * (1.0 - beta) / (1.0 + beta) } else { 1.0 };
        let acked = ack.acked.0 as f64;
        epoch.w_est += alpha * acked / cwnd;
        let rtt = conn.srtt.unwrap_or(Span::ZERO).as_secs_f64();
        let t = conn.now.since(epoch.start).as_secs_f64();
        let curve = |t: f64| c * (t - epoch.k).powi(3) + epoch.w_max;
        let target = if curve(t) < epoch.w_est { epoch.w_est } else { curve(t + rtt).clamp(cwnd, 1.5 * cwnd) };
        // Reno's window is the current value of cwnd; the curve's target is its value after a round trip.
        let growth = if curve(t) < epoch.w_est { target - cwnd } else { (target - cwnd) * acked / cwnd };
        grow(window, &mut self.credit, growth.max(0.0));
    }

    fn ssthresh(&mut self, _: &Conn, window: &Window) -> Packets {
        let cwnd = window.cwnd.0 as f64;
        self.w_max = if cwnd < self.w_max { cwnd * (1.0 + self.beta) / 2.0 } else { cwnd };
        self.cwnd_prior = cwnd;
        self.epoch = None;
        self.credit = 0.0;
        Packets(((cwnd * self.beta) as u64).max(2))
    }
}
