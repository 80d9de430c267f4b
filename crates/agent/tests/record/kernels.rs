//! The same tests on other kernels.

use crate::on_kernels::{Tests, run_on_all};

/// What stdbuf has the dynamic linker load.
const STDBUF: &str = "/usr/libexec/coreutils/libstdbuf.so";

#[test]
fn on_other_kernels_it_does_the_same() {
    run_on_all(&Tests {
        // Not what takes nftables, or a machine that is quick.
        names: &[
            "bbr::bbr_on_a_short_path_is_not_short_of_cpu_unless_its_machine_was_off_cpu",
            "beginnings::connections_in_all_namespaces_that_were_open_before_are_joined",
            "beginnings::a_connection_that_stays_open_has_interim_rows_and_a_last_one",
            "beginnings::open_connections_are_shown",
            "beginnings::a_socket_that_is_connected_again_is_another_connection",
            "clock::times_follow_a_clock_that_is_set_and_durations_do_not",
            "detail::low_detail_has_the_rows_of_full_detail_without_the_other_columns",
            "endings::whose_fin_came_first_is_told_by_both_ends",
            "endings::a_reset_is_told_by_both_ends",
            "endings::endpoints_namespaces_and_cgroups_are_those_of_the_socket",
            "endings::the_algorithm_is_told_as_it_was_at_the_opening_and_at_the_end",
            "forgotten::unreported_closes_are_found_by_a_scan_and_leave_no_trace",
            "forgotten::a_connection_that_is_open_when_a_walk_comes_is_told_of_again",
            "many::more_connections_than_there_is_room_for_are_counted",
            "refusals::a_killed_recorder_leaves_nothing_that_stops_the_next",
            "refusals::every_signal_that_asks_for_an_end_is_one_with_code_0",
            "ss::the_numbers_are_those_of_ss",
        ],
        tools: &["stdbuf"],
        files: &[STDBUF],
    });
}
