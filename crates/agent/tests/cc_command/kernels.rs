//! The same tests on other kernels: before Linux 6.4 a registration has no link, and outlives a loader that is killed;
//! up to 6.9 `cong_control` has two arguments.

use crate::on_kernels::{Tests, run_on_all};

#[test]
fn on_other_kernels_it_does_the_same() {
    run_on_all(&Tests {
        names: &[
            "keeping::a_kept_registration_outlives_its_loader_until_it_is_unloaded",
            "keeping::a_killed_loader_leaves_nothing_or_what_the_next_one_removes",
            "keeping::a_killed_loader_leaves_nothing_or_what_unload_removes",
            "keeping::a_second_loader_is_refused_and_the_first_stays",
            "keeping::a_users_own_algorithm_is_loaded_from_its_file",
            "keeping::what_an_earlier_loader_has_left_is_replaced",
            "refusals::a_program_that_the_verifier_refuses_is_shown_with_its_words",
            "refusals::an_ordinary_user_is_told_to_use_sudo",
            "refusals::only_algorithms_in_ebpf_can_be_unloaded",
            "transfers::a_live_transfer_goes_on_when_its_algorithm_is_taken_back",
            "transfers::an_ordinary_users_transfer_is_handled_and_counted",
            "transfers::version_3_of_bbr_handles_and_counts_a_transfer",
            "transfers::version_3_of_bbr_takes_a_rule_for_senders_that_share_a_cpu",
            "transfers::bbr_with_parameters_handles_a_transfer_and_shows_them",
            "transfers::the_default_of_connections_does_not_stay_with_an_algorithm_that_is_gone",
        ],
        tools: &["iperf3", "setpriv", "sysctl"],
        files: &[concat!(env!("OUT_DIR"), "/fixed_window.bpf.o"), concat!(env!("OUT_DIR"), "/rejected.bpf.o")],
    });
}
