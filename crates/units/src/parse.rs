//! Parses and formats numbers with units exactly, without floating-point arithmetic.

use std::fmt;

/// Error of parsing a quantity.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("found {found:?}, expected {expected}")]
pub struct ParseError {
    /// The original text.
    pub found: String,
    /// The expected format.
    pub expected: &'static str,
}

/// Parses a non-negative decimal number and one of `units` (name, value in the base unit).
///
/// # Errors
/// If the text has another form, a fraction is finer than the base unit or has more than 18 digits, or the value
/// exceeds 2^64 - 1. Nothing is rounded.
pub(crate) fn quantity(text: &str, units: &[(&str, u64)], expected: &'static str) -> Result<u64, ParseError> {
    let error = || ParseError { found: text.to_owned(), expected };
    let trimmed = text.trim();
    let split = trimmed.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or_else(error)?;
    let (number, unit) = trimmed.split_at(split);
    let unit = unit.trim_start();
    let (_, factor) = units.iter().find(|(name, _)| *name == unit).ok_or_else(error)?;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() || (number.contains('.') && fraction.is_empty()) || fraction.len() > 18 {
        return Err(error());
    }
    let digits: u128 = format!("{whole}{fraction}").parse().map_err(|_| error())?;
    let denominator = 10u128.pow(fraction.len() as u32);
    let scaled = digits.checked_mul(u128::from(*factor)).ok_or_else(error)?;
    if scaled % denominator != 0 {
        return Err(error());
    }
    u64::try_from(scaled / denominator).map_err(|_| error())
}

/// Writes `value` in the largest of `units` (powers of ten, largest first) that it reaches, or zero in the smallest
/// one, with as many decimals as needed: parsing the text yields the same value.
pub(crate) fn write(out: &mut fmt::Formatter<'_>, value: u64, units: &[(&str, u64)]) -> fmt::Result {
    let (name, factor) =
        units.iter().find(|(_, factor)| value >= *factor).or(units.last()).expect("units are not empty");
    let (whole, rest) = (value / factor, value % factor);
    if rest == 0 {
        return write!(out, "{whole}{name}");
    }
    let width = factor.ilog10() as usize;
    let decimals = format!("{rest:0width$}");
    write!(out, "{whole}.{}{name}", decimals.trim_end_matches('0'))
}
