//! See `thalweg_fuzz::netlink`.
#![cfg_attr(fuzzing, no_main)]

thalweg_fuzz::target!(thalweg_fuzz::netlink);
