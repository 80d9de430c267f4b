//! See `thalweg_fuzz::capture`.
#![cfg_attr(fuzzing, no_main)]

thalweg_fuzz::target!(thalweg_fuzz::capture);
