//! The same tests on other kernels.

use crate::on_kernels::{Tests, run_on_all};
use crate::refused::OBJECT;

#[test]
fn other_kernels_behave_the_same() {
    run_on_all(&Tests {
        // Excludes tests that need nftables or many connections, and those that do not depend on the kernel.
        names: &[
            "alone::a_new_tuner_replaces_a_killed_one",
            "alone::a_stopped_tuner_leaves_nothing_behind",
            "alone::after_a_kill_the_kernel_side_continues_for_the_grace_time_and_is_then_removed",
            "choosing::ipv6_and_ipv4_mapped_connections_are_tuned",
            "choosing::both_ends_use_the_drawn_algorithm_and_their_rows_record_it",
            "choosing::algorithms_that_need_ecn_are_selected_only_in_data_centres",
            "choosing::held_out_connections_keep_the_default_of_their_namespace",
            "refused::a_removed_algorithm_is_reported_and_left_out_of_the_choice",
            "untouched::private_addresses_are_excluded_unless_enabled_and_public_ones_are_not",
            "untouched::an_algorithm_set_by_a_route_is_kept",
            "untouched::an_algorithm_set_by_the_application_is_kept",
        ],
        tools: &["sysctl"],
        files: &[OBJECT],
    });
}
