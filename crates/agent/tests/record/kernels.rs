//! Runs the same tests on other kernels.

use crate::on_kernels::{Tests, run_on_all};

/// The library that stdbuf preloads.
const STDBUF: &str = "/usr/libexec/coreutils/libstdbuf.so";

#[test]
fn other_kernels_behave_the_same() {
    run_on_all(&Tests {
        // Excludes tests that need nftables or a fast machine, and those that do not depend on the kernel.
        names: &[
            "bbr::bbr_on_a_short_path_is_short_of_cpu_only_if_its_machine_was_off_cpu",
            "beginnings::connections_opened_before_recording_are_recorded_in_all_namespaces",
            "beginnings::a_long_connection_has_interim_rows_and_a_final_one",
            "beginnings::open_connections_are_shown",
            "beginnings::a_reconnected_socket_is_a_new_connection",
            "clock::timestamps_follow_clock_changes_and_durations_do_not",
            "detail::low_detail_has_the_rows_of_full_detail_without_the_other_columns",
            "endings::both_ends_record_which_side_sent_the_first_fin",
            "endings::both_ends_record_a_reset",
            "endings::endpoints_namespaces_and_cgroups_are_those_of_the_socket",
            "forgotten::unreported_closes_are_found_by_a_scan_and_leave_no_trace",
            "forgotten::a_connection_that_is_still_open_at_a_scan_is_reported_again",
            "refusals::a_killed_recorder_leaves_nothing_that_blocks_the_next",
            "ss::recorded_values_match_ss",
        ],
        tools: &["stdbuf"],
        files: &[STDBUF],
    });
}
