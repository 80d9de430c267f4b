//! See `thalweg_fuzz::prefixes`.
#![cfg_attr(fuzzing, no_main)]

thalweg_fuzz::target!(thalweg_fuzz::prefixes);
