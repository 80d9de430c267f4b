//! See `thalweg_fuzz::outcomes`.
#![cfg_attr(fuzzing, no_main)]

thalweg_fuzz::target!(thalweg_fuzz::outcomes);
