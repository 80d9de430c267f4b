//! Runs the same tests on other kernels: before Linux 6.4, a registration outlives a loader that is killed.

use crate::on_kernels::{Tests, run_on_all};

#[test]
fn other_kernels_behave_the_same() {
    run_on_all(&Tests {
        names: &[
            "keeping::a_kept_registration_outlives_its_loader_until_it_is_unloaded",
            "keeping::leftovers_of_a_killed_loader_are_removed_by_the_next_loader",
            "keeping::a_second_loader_is_rejected_and_the_first_stays",
            "keeping::leftovers_of_an_earlier_loader_are_replaced",
            "refusals::a_verifier_rejection_is_shown_with_the_verifier_log",
            "transfers::a_live_transfer_continues_when_its_algorithm_is_unloaded",
            "transfers::a_transfer_of_an_unprivileged_user_is_handled_and_counted",
            "transfers::bbr3_handles_and_counts_a_transfer",
            "transfers::bbr3_accepts_the_rule_for_senders_on_a_shared_cpu",
            "transfers::bbr_with_parameters_handles_a_transfer_and_shows_them",
            "transfers::the_system_default_does_not_keep_an_unloaded_algorithm",
        ],
        tools: &["iperf3", "setpriv", "sysctl"],
        files: &[concat!(env!("OUT_DIR"), "/rejected.bpf.o")],
    });
}
