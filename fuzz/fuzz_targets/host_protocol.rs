//! See `thalweg_fuzz::host_protocol`.
#![cfg_attr(fuzzing, no_main)]

thalweg_fuzz::target!(thalweg_fuzz::host_protocol);
