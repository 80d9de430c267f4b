//! Tests of weights and arms.

use crate::synthetic::{BBR, CUBIC, arms};
use proptest::prelude::*;
use thalweg_policy::{Arms, ArmsError, Weights};

#[test]
fn arms_without_the_default_are_refused() {
    let error = Arms::named(&["bbr"], "cubic").unwrap_err();
    assert_eq!(
        error.to_string(),
        "the arms bbr lack the system's default `cubic`; add it, because held-out connections use it"
    );
    assert_eq!(Arms::named(&["cubic", "cubic"], "cubic").unwrap_err(), ArmsError::Twice("cubic".to_owned()));
    assert_eq!(Arms::named(&["a", "b", "c", "d", "e", "f", "g", "h", "i"], "a").unwrap_err(), ArmsError::TooMany(9));
}

#[test]
fn properties_of_an_arm_follow_from_its_name() {
    let arms = Arms::named(&["cubic", "bbr", "bbr_cpu"], "cubic").unwrap();
    let properties: Vec<_> = arms.iter().map(|(_, arm)| (arm.is_loss_based, arm.needs_whole_cpu)).collect();
    assert_eq!(properties, [(true, false), (false, true), (false, false)]);
}

#[test]
fn the_weight_of_excluded_arms_is_redistributed_to_the_others() {
    let weights = Weights::of(&[0.25, 0.5, 0.25]).holding_out(0.05);
    let remaining = weights.clone().without(CUBIC, |arm| arm == BBR);
    assert_eq!(remaining.probabilities(), [0.5, 0.0, 0.5]);
    assert_eq!(remaining.holdout(), 0.05);
    assert_eq!(Weights::only(&arms(), BBR).without(CUBIC, |arm| arm == BBR).probabilities(), [1.0, 0.0]);
}

proptest! {
    #[test]
    fn probabilities_sum_to_one_for_any_weights(wishes in prop::collection::vec(prop::num::f64::ANY, 1..8)) {
        let weights = Weights::of(&wishes);
        prop_assert!((weights.probabilities().iter().sum::<f64>() - 1.0).abs() < 1e-9);
        prop_assert!(weights.probabilities().iter().all(|probability| (0.0..=1.0).contains(probability)));
    }

    #[test]
    fn an_arm_with_probability_zero_is_never_drawn(
        wishes in prop::collection::vec(0.0f64..1.0, 1..8), zero: usize, unit in 0.0f64..1.0,
    ) {
        let mut wishes = wishes;
        wishes.push(1.0);
        let zero = zero % (wishes.len() - 1);
        wishes[zero] = 0.0;
        let weights = Weights::of(&wishes);
        prop_assert!(weights.draw(unit).index() != zero);
        let random = (unit * (1u64 << 32) as f64) as u64;
        let thresholds = weights.thresholds();
        let drawn = thresholds.iter().position(|&end| random < end).unwrap();
        prop_assert!(drawn != zero);
        prop_assert!(thresholds.windows(2).all(|pair| pair[0] <= pair[1]));
        prop_assert_eq!(*thresholds.last().unwrap(), 1u64 << 32);
    }
}
