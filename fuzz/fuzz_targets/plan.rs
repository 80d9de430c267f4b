//! See `thalweg_fuzz::plan`.
#![cfg_attr(fuzzing, no_main)]

thalweg_fuzz::target!(thalweg_fuzz::plan);
