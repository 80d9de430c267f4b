//! Tests of invalid configurations and their error messages.

use crate::common::{self, plain, steps, trace};
use thalweg_link::LinkError;
use thalweg_plan::plan;
use thalweg_units::Probability;

fn refusal(config: &plan::Link, trace_ms: Option<&[u64]>) -> LinkError {
    common::link(config, trace_ms).expect_err("this cannot be")
}

/// Returns a probability as read from a file, which its type does not check.
fn unchecked(text: &str) -> Probability {
    serde_json::from_str(text).unwrap()
}

#[test]
fn invalid_rate_steps_are_rejected() {
    let refused = |phases: &[(u64, u64)]| refusal(&plan::Link { capacity: steps(phases), ..plain() }, None);
    assert_eq!(refused(&[]).code, "steps-empty");
    assert_eq!(refused(&[(1, 1_000)]).code, "first-step-not-at-0");
    assert_eq!(refused(&[(0, 1_000), (0, 2_000)]).code, "steps-not-increasing");
    let error = refused(&[(0, 1_000), (5, 2_000), (4, 3_000)]);
    assert_eq!(error.code, "steps-not-increasing");
    assert_eq!(error.place, "capacity.steps[2].at_ns");
}

#[test]
fn invalid_traces_are_rejected() {
    let config = plan::Link { capacity: trace(), ..plain() };
    assert_eq!(refusal(&config, None).code, "trace-missing");
    assert_eq!(refusal(&config, Some(&[])).code, "trace-empty");
    assert_eq!(refusal(&config, Some(&[0, 0])).code, "trace-without-length");
    assert_eq!(refusal(&config, Some(&[u64::MAX])).code, "trace-too-long");
    let error = refusal(&config, Some(&[1, 5, 4]));
    assert_eq!(
        error.to_string(),
        "traces.test, line 3: found 4 after 5, expected times in ascending order\nhint: sort it with: sort -n FILE"
    );
}

#[test]
fn probabilities_out_of_range_are_rejected_with_their_key() {
    let place = |config: plan::Link| {
        let error = refusal(&config, None);
        assert_eq!(error.code, "not-a-probability");
        error.place
    };
    let good = Probability::new(0.5).unwrap();
    let ge = |p, r, loss_bad, loss_good| plan::Loss::GilbertElliott { p, r, loss_bad, loss_good };
    let lossy = |loss| plan::Link { loss, ..plain() };
    for bad in [unchecked("1.01"), unchecked("-0.01")] {
        assert_eq!(place(plan::Link { duplicate: bad, ..plain() }), "duplicate");
        assert_eq!(place(plan::Link { reorder: bad, ..plain() }), "reorder");
        assert_eq!(place(lossy(plan::Loss::Bernoulli { ratio: bad })), "loss.ratio");
        assert_eq!(place(lossy(ge(bad, good, good, good))), "loss.p");
        assert_eq!(place(lossy(ge(good, bad, good, good))), "loss.r");
        assert_eq!(place(lossy(ge(good, good, bad, good))), "loss.loss_bad");
        assert_eq!(place(lossy(ge(good, good, good, bad))), "loss.loss_good");
    }
}
