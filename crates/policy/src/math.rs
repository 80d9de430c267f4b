//! The normal distribution, and running moments. Functions are those of `libm`, whose results do not depend on the
//! platform.

use serde::{Deserialize, Serialize};

/// The 97.5th percentile of the standard normal distribution: half the width of a 95 % interval.
pub(crate) const Z95: f64 = 1.959_963_984_540_054;

/// Returns the quantile `p` (between 0 and 1) of the standard normal distribution, with a relative error of about 1e-9.
///
/// Source: Peter Acklam's rational approximation.
pub(crate) fn normal_quantile(p: f64) -> f64 {
    const A: [f64; 6] = [
        -3.969_683_028_665_376e1,
        2.209_460_984_245_205e2,
        -2.759_285_104_469_687e2,
        1.383_577_518_672_69e2,
        -3.066_479_806_614_716e1,
        2.506_628_277_459_239,
    ];
    const B: [f64; 5] = [
        -5.447_609_879_822_406e1,
        1.615_858_368_580_409e2,
        -1.556_989_798_598_866e2,
        6.680_131_188_771_972e1,
        -1.328_068_155_288_572e1,
    ];
    const C: [f64; 6] = [
        -7.784_894_002_430_293e-3,
        -3.223_964_580_411_365e-1,
        -2.400_758_277_161_838,
        -2.549_732_539_343_734,
        4.374_664_141_464_968,
        2.938_163_982_698_783,
    ];
    const D: [f64; 4] =
        [7.784_695_709_041_462e-3, 3.224_671_290_700_398e-1, 2.445_134_137_142_996, 3.754_408_661_907_416];
    const TAIL: f64 = 0.02425;
    let horner = |coefficients: &[f64], x: f64| coefficients.iter().fold(0.0, |sum, c| sum * x + c);
    let tail = |p: f64| {
        let q = libm::sqrt(-2.0 * libm::log(p));
        horner(&C, q) / (horner(&D, q) * q + 1.0)
    };
    if p < TAIL {
        tail(p)
    } else if p > 1.0 - TAIL {
        -tail(1.0 - p)
    } else {
        let (q, r) = (p - 0.5, (p - 0.5) * (p - 0.5));
        q * horner(&A, r) / (horner(&B, r) * r + 1.0)
    }
}

/// Count, mean and sum of squared deviations of a sequence (Welford's algorithm).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Moments {
    pub n: f64,
    pub mean: f64,
    /// Sum of squared deviations from the mean.
    pub scatter: f64,
}

impl Moments {
    pub fn add(&mut self, x: f64) {
        self.n += 1.0;
        let step = x - self.mean;
        self.mean += step / self.n;
        self.scatter += step * (x - self.mean);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_match_published_tables() {
        for (p, z) in [(0.5, 0.0), (0.975, Z95), (0.01, -2.326_347_874), (0.999, 3.090_232_306), (1e-6, -4.753_424_309)]
        {
            assert!((normal_quantile(p) - z).abs() < 1e-8, "{p}: {}", normal_quantile(p));
        }
    }

    #[test]
    fn moments_match_those_of_the_samples() {
        let mut moments = Moments::default();
        [1.0, 2.0, 4.0, 9.0].into_iter().for_each(|x| moments.add(x));
        assert_eq!((moments.n, moments.mean), (4.0, 4.0));
        assert!((moments.scatter - 38.0).abs() < 1e-12, "{}", moments.scatter);
    }
}
