//! See `thalweg_fuzz::kernel_image`.
#![cfg_attr(fuzzing, no_main)]

thalweg_fuzz::target!(thalweg_fuzz::kernel_image);
