//! One experiment, from an empty machine to rows.
