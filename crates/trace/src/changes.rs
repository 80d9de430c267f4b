//! Detects values of a connection that differ from those reported before.

/// The last value of each key that a connection reported, so that a row of [`StateRow`](crate::StateRow) is made only
/// where a value changes.
#[derive(Clone, Debug, Default)]
pub struct Changes(Vec<(&'static str, f64)>);

/// One report of a connection: every key once, in any order.
#[derive(Debug)]
pub struct Report<'a> {
    values: &'a mut Vec<(&'static str, f64)>,
    /// Index of the key that is expected next: keys usually come in the order of the report before.
    next: usize,
}

impl Changes {
    /// Starts the next report.
    pub fn report(&mut self) -> Report<'_> {
        Report { values: &mut self.0, next: 0 }
    }
}

impl Report<'_> {
    /// Whether the key is new or its value differs from the last one. Remembers the value. Values are compared by their
    /// bits, so NaN equals itself.
    ///
    /// ```
    /// # use thalweg_trace::Changes;
    /// let mut changes = Changes::default();
    /// let reported = |changes: &mut Changes, mode, gain| {
    ///     let mut report = changes.report();
    ///     [report.is_change("mode", mode), report.is_change("pacing_gain", gain)]
    /// };
    /// assert_eq!(reported(&mut changes, 0.0, 1.25), [true, true]);
    /// assert_eq!(reported(&mut changes, 0.0, 0.75), [false, true]);
    /// assert_eq!(reported(&mut changes, 0.0, 0.75), [false, false]);
    /// ```
    pub fn is_change(&mut self, key: &'static str, value: f64) -> bool {
        let expected = self.next;
        self.next += 1;
        match self.values.get_mut(expected) {
            Some((name, last)) if *name == key => replace(last, value),
            _ => self.is_change_elsewhere(key, value),
        }
    }

    #[cold]
    fn is_change_elsewhere(&mut self, key: &'static str, value: f64) -> bool {
        if let Some(index) = self.values.iter().position(|(name, _)| *name == key) {
            self.next = index + 1;
            return replace(&mut self.values[index].1, value);
        }
        self.values.push((key, value));
        self.next = self.values.len();
        true
    }
}

/// Replaces `last`, and returns whether the value changed.
fn replace(last: &mut f64, value: f64) -> bool {
    std::mem::replace(last, value).to_bits() != value.to_bits()
}

#[cfg(test)]
mod tests {
    use super::Changes;

    #[test]
    fn keys_may_come_in_another_order_and_appear_later() {
        let mut changes = Changes::default();
        let mut reported = |values: &[(&'static str, f64)]| {
            let mut report = changes.report();
            values.iter().filter(|(key, value)| report.is_change(key, *value)).map(|(key, _)| *key).collect::<Vec<_>>()
        };
        assert_eq!(reported(&[("a", 1.0), ("b", 2.0), ("c", f64::NAN)]), ["a", "b", "c"]);
        assert_eq!(reported(&[("c", f64::NAN), ("a", 1.0), ("b", 3.0)]), ["b"]);
        assert_eq!(reported(&[("a", 1.0), ("c", f64::NAN)]), [""; 0]);
        assert_eq!(reported(&[("a", 1.0), ("d", 4.0), ("b", 3.0), ("c", 0.0)]), ["d", "c"]);
        assert_eq!(reported(&[("a", 2.0), ("d", 4.0), ("b", 3.0), ("c", 0.0)]), ["a"]);
    }
}
