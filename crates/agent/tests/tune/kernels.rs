//! The same tests on other kernels.

use crate::on_kernels::{Tests, run_on_all};
use crate::refused::OBJECT;

#[test]
fn on_other_kernels_it_does_the_same() {
    run_on_all(&Tests {
        // Not what takes nftables or many connections, and not all that is the same everywhere.
        names: &[
            "alone::a_new_one_takes_the_place_of_one_that_was_killed",
            "alone::one_that_ends_leaves_nothing",
            "alone::the_kernel_goes_on_for_the_grace_time_if_it_is_killed_and_then_nothing_is_left",
            "choosing::addresses_of_version_6_and_those_of_version_4_on_its_sockets_are_chosen_for",
            "choosing::both_ends_get_what_is_drawn_and_their_rows_say_so",
            "choosing::what_needs_ecn_is_chosen_in_a_data_centre_alone",
            "choosing::each_namespace_keeps_its_own_default_for_those_held_out",
            "refused::an_algorithm_that_goes_is_left_out_and_said_and_the_others_are_chosen",
            "untouched::private_addresses_are_left_alone_unless_asked_and_others_are_not",
            "untouched::the_operators_word_goes_first",
            "untouched::what_a_route_says_stays",
            "untouched::what_an_application_has_chosen_stays",
        ],
        tools: &["sysctl"],
        files: &[OBJECT],
    });
}
