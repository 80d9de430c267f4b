//! See `thalweg_fuzz::elf`.
#![cfg_attr(fuzzing, no_main)]

thalweg_fuzz::target!(thalweg_fuzz::elf);
