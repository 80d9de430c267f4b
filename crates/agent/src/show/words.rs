//! Short formats of quantities in tables.

/// Formats a count with thousands separators: 1,234,567.
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Formats a quantity below 10^18 with at most three digits and an SI prefix: 12, 9.46k, 73.2M, 1.05G.
pub fn short(number: f64) -> String {
    let mut rest = number;
    // A value that would round to 1000 uses the next prefix.
    for letter in ["", "k", "M", "G", "T"] {
        if rest < 999.5 {
            let digits = match rest {
                _ if letter.is_empty() && rest.fract() == 0.0 => 0,
                rest if rest < 9.995 => 2,
                rest if rest < 99.95 => 1,
                _ => 0,
            };
            return format!("{rest:.digits$}{letter}");
        }
        rest /= 1000.0;
    }
    format!("{rest:.0}P")
}

/// Formats a number of bytes: 812 B, 1.23 GB.
pub fn bytes(number: u64) -> String {
    let text = short(number as f64);
    match text.find(|letter: char| letter.is_ascii_alphabetic()) {
        Some(at) => format!("{} {}B", &text[..at], &text[at..]),
        None => format!("{text} B"),
    }
}

/// Formats a round-trip time: 212us, 48.2ms, 1.20s.
pub fn time(us: u64) -> String {
    match us {
        0..1_000 => format!("{us}us"),
        // A value that would round to 1000 ms is written in seconds.
        1_000..999_500 => format!("{}ms", short(us as f64 / 1e3)),
        _ => format!("{}s", short(us as f64 / 1e6)),
    }
}

/// Formats a duration in one or two units: 12s, 3m05s, 27h01m, 4d03h.
pub fn age(us: u64) -> String {
    let seconds = us / 1_000_000;
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3_600 => format!("{minutes}m{:02}s", seconds % 60),
        3_600..172_800 => format!("{hours}h{:02}m", minutes % 60),
        _ => format!("{days}d{:02}h", hours % 24),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_have_thousands_separators() {
        assert_eq!([0, 999, 1000, 1_234_567].map(count), ["0", "999", "1,000", "1,234,567"]);
    }

    #[test]
    fn quantities_have_three_significant_digits() {
        let texts = [0.0, 12.0, 0.5, 999.0, 999.7, 1000.0, 9_460.0, 99_960.0, 73_234_567.0, 1.05e9, 2e17];
        let expected = ["0", "12", "0.50", "999", "1.00k", "1.00k", "9.46k", "100k", "73.2M", "1.05G", "200P"];
        assert_eq!(texts.map(short), expected);
        assert_eq!([0, 812, 1_234_567_890].map(bytes), ["0 B", "812 B", "1.23 GB"]);
    }

    #[test]
    fn times_use_the_best_fitting_unit() {
        assert_eq!([0, 212, 48_210, 999_999, 1_200_000].map(time), ["0us", "212us", "48.2ms", "1.00s", "1.20s"]);
        let seconds = [12, 185, 97_260, 4 * 86_400 + 3 * 3600].map(|seconds| age(seconds * 1_000_000));
        assert_eq!(seconds, ["12s", "3m05s", "27h01m", "4d03h"]);
    }
}
