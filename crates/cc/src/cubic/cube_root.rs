//! Cube roots of integers, as Linux rounds them.
//!
//! Performs one step of Newton's method from an initial guess that the leading bits select. K depends on the
//! rounding, so the guesses are Linux's.

/// Initial guesses of the cube root for the numbers 8 to 63, in 64ths. They are slightly high, so that one step
/// suffices. Source: behaviour of Linux's `tcp_cubic`.
#[rustfmt::skip]
const GUESS_64THS: [u64; 56] = [
    133, 139, 144, 148, 153, 157, 161, 166, 167, 171, 174, 178, 180, 183, 186, 189, 191, 195, 197, 200, 202, 204, 207, 209,
    210, 212, 214, 216, 219, 221, 223, 225, 227, 229, 231, 232, 234, 235, 237, 239, 241, 242, 244, 246, 247, 249, 250, 252,
    254, 255, 256, 258, 260, 261, 262, 264,
];

/// Returns the cube root of `a`, off by at most 1 %. `a` is at least 2^31.
pub(super) fn cube_root(a: u64) -> u64 {
    assert!(a >= 1 << 31, "the cube root of {a} is too coarse to be of use");
    let bits = u64::from(a.ilog2()) + 1;
    // Number of octal digits below the leading two: the leading part of `a` is between 8 and 63.
    let digits = bits * 84 / 256 - 1;
    let leading = a >> (3 * digits);
    let guess = (GUESS_64THS[leading as usize - 8] << digits) / 64;
    let refined = 2 * guess + a / (guess * (guess - 1));
    refined * 341 / 1024
}

#[cfg(test)]
mod tests {
    use super::cube_root;

    #[test]
    fn cube_roots_are_within_one_percent_at_every_magnitude() {
        for exponent in 31..64 {
            for eighths in 8..16u64 {
                let a = (1u64 << (exponent - 3)) * eighths;
                let exact = (a as f64).cbrt();
                let error = (cube_root(a) as f64 - exact).abs() / exact;
                assert!(error < 0.01, "cube root of {a}: off by {error}");
            }
        }
    }
}
