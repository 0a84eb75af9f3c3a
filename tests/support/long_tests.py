"""The tests that take long: they run in `make long` and `make audit`, not in `make test`.

`make test` ends within ten minutes on two cores. So these functions leave it. Every eighth case
of a function with many cases stays, chosen by a checksum of its name; no other case stays.
Every kind of test that is named here has shorter relatives in `make test`.
"""

from __future__ import annotations

import os
from zlib import crc32

ALONE = "UMPC_LONG"
"""If this variable is set, only the long tests run. `make long` sets it."""
AUDIT = "UMPC_AUDIT_RUNS"
"""If this variable is set, nothing is left out. `make audit` sets it."""
STAYS = 8
"""One of so many cases of a long function stays in `make test`."""

LONG = {
    "tests/audit/test_audit.py": (
        "test_the_real_code_keeps_its_promise_and_the_same_runs_find_broken_code",
        "test_who_chooses_the_edges_learns_nothing_more",
    ),
    "tests/audit/test_curator.py": (
        "test_a_release_keeps_its_promise_and_the_same_runs_find_too_little_noise",
    ),
    "tests/audit/test_garbled_noise.py": (
        "test_the_real_code_keeps_its_promise_and_the_same_runs_find_broken_code",
    ),
    "tests/audit/test_gopa.py": (
        "test_the_honest_nodes_noise_keeps_its_promise_and_the_same_runs_find_noise_that_does_not",
    ),
    "tests/audit/test_grid.py": (
        "test_the_grid_keeps_its_promise_and_the_same_runs_find_broken_code",
    ),
    "tests/audit/test_onemessage.py": (
        "test_a_records_answer_keeps_its_promise_and_the_same_runs_find_one_that_does_not",
    ),
    "tests/audit/test_pairs.py": (
        "test_all_pairs_of_a_record_keep_the_promise_and_the_same_runs_find_broken_code",
    ),
    "tests/audit/test_parts.py": (
        "test_a_nodes_shares_of_two_sums_are_independent",
        "test_a_single_share_is_uniform_and_says_nothing",
        "test_coins_are_known_to_nobody_unless_the_dealers_masks_are_known_too",
    ),
    "tests/audit/test_repeated.py": (
        "test_two_runs_lose_no_more_than_both_promise_unless_randomness_is_used_twice",
    ),
    "tests/audit/test_seed.py": ("test_one_honest_node_makes_every_set_of_edges_equally_likely",),
    "tests/audit/test_shuffled.py": (
        "test_the_noise_of_the_honest_alone_keeps_the_promise",
        "test_too_little_noise_is_found",
    ),
    "tests/audit/test_tworounds.py": (
        "test_either_message_keeps_its_promise_and_the_same_runs_find_one_that_does_not",
    ),
    "tests/bench/baselines/test_accounting.py": (
        "test_no_theorem_is_below_the_exact_composition",
        "test_one_event_more_never_costs_less",
        "test_order_does_not_matter_and_more_delta_costs_less",
    ),
    "tests/bench/baselines/test_applications.py": (
        "test_the_loss_of_the_triangles_is_at_most_epsilon",
    ),
    "tests/bench/baselines/test_coins.py": (
        "test_the_law_is_discrete_laplace",
        "test_the_odds_of_a_coin",
    ),
    "tests/bench/baselines/test_command.py": ("test_every_table_is_printed",),
    "tests/bench/baselines/test_dpsgd.py": (
        "test_the_excess_risk_is_within_its_bound",
        "test_the_loss_of_a_step_is_at_most_epsilon_and_more_with_a_sixth_of_the_noise",
        "test_the_noise_on_a_gradient_is_the_predicted_one",
    ),
    "tests/bench/baselines/test_gopa.py": (
        "test_its_loss_is_at_most_epsilon_and_more_where_colluders_cut_the_graph",
        "test_messages_have_the_covariance_that_the_proof_is_about",
        "test_the_mean_has_the_noise_of_the_own_parts_only",
    ),
    "tests/bench/baselines/test_inversion.py": (
        "test_at_scale_1e9_the_law_is_gamma",
        "test_the_law_is_polya",
    ),
    "tests/bench/baselines/test_ranking.py": (
        "test_it_ranks_a_made_up_table_and_worse_with_more_noise",
    ),
    "tests/bench/baselines/test_textbook.py": (
        "test_the_odds_of_randomised_response",
        "test_the_odds_of_the_exponential_mechanism",
    ),
    "tests/bench/test_figures.py": ("test_workers_measure_the_same_as_this_process",),
    "tests/bench/test_figures_001.py": (
        "test_a_quick_run_of_each_figure_says_whether_it_agrees",
        "test_tallies_have_the_law_of_whole_messages",
        "test_told_histograms_have_the_law_of_responses",
    ),
    "tests/bench/test_figures_003.py": (
        "test_errors_are_those_that_are_predicted",
        "test_population_errors_are_those_that_are_predicted",
    ),
    "tests/bench/test_figures_planned.py": (
        "test_a_point_is_measured_and_predicted",
        "test_what_a_curator_computes_once_is_what_it_computes_every_time",
    ),
    "tests/dp/test_binomial.py": ("test_the_number_is_enough_and_two_fewer_are_not",),
    "tests/dp/test_calibration.py": (
        "test_all_shares_sum_to_the_wider_law",
        "test_power_a_wrong_epsilon_is_found",
        "test_power_a_wrong_number_of_honest_nodes_is_found",
        "test_the_shares_of_the_honest_nodes_alone_are_discrete_laplace",
    ),
    "tests/dp/test_gaussian.py": (
        "test_any_size_is_drawn",
        "test_the_law_is_discrete_gaussian",
    ),
    "tests/dp/test_geometric.py": ("test_the_law_is_discrete_laplace",),
    "tests/dp/test_laplace.py": (
        "test_h_shares_sum_to_discrete_laplace",
        "test_power_a_wrong_number_of_shares_is_found",
    ),
    "tests/dp/test_mechanisms.py": (
        "test_discrete_laplace_adds_the_law_to_the_value",
        "test_laplace_is_near_the_continuous_law",
    ),
    "tests/dp/test_poisson.py": (
        "test_a_large_mean_is_normal_around_it",
        "test_proposals_are_accepted_often_enough",
        "test_the_law_is_poisson",
    ),
    "tests/dp/test_polya.py": (
        "test_at_scale_1e9_the_law_is_gamma",
        "test_the_law_is_polya",
        "test_tiny_log_ratio_has_the_gamma_law",
    ),
    "tests/dp/test_skellam.py": (
        "test_delta_holds_on_one_sum_and_is_not_absurdly_loose",
        "test_delta_holds_on_the_vector",
        "test_shares_sum_to_skellam",
        "test_the_law_is_skellam",
    ),
    "tests/mpc/garbled/test_circuits.py": (
        "test_random_kernels_are_right_on_all_pairs_of_records",
        "test_random_kernels_are_right_whatever_the_bounds",
    ),
    "tests/mpc/garbled/test_pair_noise.py": ("test_forks_are_correlated_under_the_same_delta",),
    "tests/mpc/masked/test_committee_coins.py": (
        "test_another_scale_would_be_noticed",
        "test_the_whole_noise_has_the_exact_law",
    ),
    "tests/mpc/masked/test_compiler.py": (
        "test_compiling_again_gives_the_same_plan",
        "test_material_that_would_not_fit_a_frame_is_refused_before_it_is_expanded",
    ),
    "tests/mpc/test_cost.py": (
        "test_edges_of_one_to_four_records_cost_what_was_predicted",
        "test_library_statistics_cost_what_was_predicted",
    ),
    "tests/mpc/test_edges.py": (
        "test_any_kernel_of_three_under_any_pattern",
        "test_any_pair_kernel_made_symmetric",
        "test_shares_sum_to_the_kernel_in_the_clear",
    ),
    "tests/mpc/transfers/test_coins_from_transfers.py": (
        "test_the_noise_has_the_law_of_a_dealers_committee",
    ),
    "tests/mpc/transfers/test_correlated_ot.py": (
        "test_a_batch_of_several_parts_is_correlated",
        "test_all_choices_of_eight_transfers",
    ),
    "tests/mpc/transfers/test_ot_malformed.py": (
        "test_damaged_trees_are_noticed_or_spoil_one_digit",
    ),
    "tests/mpc/transfers/test_toss_malformed.py": (
        "test_a_damaged_message_is_noticed_or_gives_other_shares",
        "test_a_message_of_another_shape_names_its_sender",
    ),
    "tests/mpc/transfers/test_toss_views.py": ("test_power_a_mask_left_out_is_found",),
    "tests/node/test_records.py": ("test_units_are_exact_for_the_decimals_written",),
    "tests/papers/test_umpc_2025.py": (
        "test_correctness_shares_over_different_groups_may_be_mixed",
        "test_privacy_one_record_changes_the_sum_by_at_most_its_degree_times_the_range",
    ),
    "tests/planning/test_alternatives.py": (
        "test_people_see_a_table_and_what_cannot_be",
        "test_what_a_run_would_refuse_for_its_numbers_of_records_is_not_possible",
    ),
    "tests/planning/test_reference_table.py": (
        "test_the_sampling_error_is_that_of_the_samplers",
        "test_the_sampling_error_of_triples_is_near_that_of_the_sampler",
    ),
    "tests/protocols/bell_2pc/test_noise.py": (
        "test_noise_of_one_pair_says_nothing_of_anothers",
        "test_noise_of_pairs_between_nodes_and_inside_a_node_has_one_law",
        "test_responses_are_right_as_often_as_they_should_be",
        "test_the_mean_squared_error_is_that_of_theorem_5_with_its_noise_term_corrected",
        "test_the_released_estimate_of_responses_is_unbiased",
    ),
    "tests/protocols/bell_2pc/test_pair_mechanisms.py": (
        "test_odds_of_randomised_response_are_at_most_e_epsilon_and_hardly_less",
        "test_randomised_response_is_unbiased_with_the_stated_deviation",
    ),
    "tests/protocols/bell_2pc/test_study.py": (
        "test_responses_that_are_certain_are_the_clear_values",
        "test_with_transfers_over_any_pairings_of_odd_numbers_of_records",
        "test_without_noise_every_statistic_is_the_clear_one_over_the_same_pairs",
    ),
    "tests/protocols/bell_2pc/test_views.py": (
        "test_nobody_knows_a_pairs_noise_and_no_two_pairs_share_it",
        "test_power_a_view_that_tells_more_is_found",
        "test_power_noise_that_somebody_knows_is_found",
        "test_what_a_node_and_the_coordinator_see_does_not_depend_on_the_others_records",
    ),
    "tests/protocols/central/test_central_mechanisms.py": (
        "test_the_error_around_the_mean_over_its_sets_has_exactly_the_predicted_noise",
    ),
    "tests/protocols/central/test_coinpress.py": (
        "test_the_error_on_a_table_is_what_was_predicted",
        "test_the_error_towards_the_parameter_is_what_was_predicted",
        "test_the_loss_over_drawn_tuples_is_at_most_epsilon",
    ),
    "tests/protocols/central/test_hajek.py": (
        "test_its_loss_is_at_most_epsilon",
        "test_on_a_table_that_fits_its_error_is_the_predicted_noise",
        "test_subsampled_its_error_is_the_noise_of_the_family_drawn",
    ),
    "tests/protocols/central/test_smooth.py": (
        "test_every_neighbour_of_every_small_table",
        "test_every_neighbour_of_every_table_over_all_pairs",
        "test_levels_beyond_reach_do_not_count_and_the_rest_is_smooth_both_ways",
    ),
    "tests/protocols/central/test_split.py": (
        "test_its_loss_is_at_most_epsilon",
        "test_its_noise_is_the_predicted_one",
    ),
    "tests/protocols/ghazi_rounds/test_study.py": (
        "test_whole_studies_have_the_stated_mean_and_variance",
    ),
    "tests/protocols/ghazi_shuffle/test_mechanism.py": (
        "test_the_estimate_has_the_stated_mean_and_variance",
    ),
    "tests/protocols/ghazi_shuffle/test_sizes.py": (
        "test_a_study_of_54000_records_a_node_ends_at_its_cells_own_value",
    ),
    "tests/protocols/ghazi_shuffle/test_study.py": (
        "test_a_shuffler_sees_uniform_numbers_whatever_the_records_are",
        "test_the_error_of_many_runs_is_the_predicted_one",
    ),
    "tests/protocols/gopa/test_study.py": ("test_what_each_sees_has_the_stated_law",),
    "tests/protocols/grid/operators/test_dyadic.py": ("test_a_sum_is_the_sum_by_its_definition",),
    "tests/protocols/grid/test_grid_run.py": (
        "test_any_tables_at_any_nodes",
        "test_every_statistic_is_the_clear_one",
    ),
    "tests/protocols/grid/test_views.py": ("test_power_a_grid_without_a_protection_is_found",),
    "tests/protocols/grid/test_without_dealer.py": (
        "test_every_statistic_is_the_clear_one",
        "test_two_records_of_a_small_domain_at_two_nodes",
    ),
    "tests/protocols/local/test_bell_auc.py": (
        "test_discarded_nodes_have_the_stated_error",
        "test_the_estimate_has_the_stated_mean_and_variance",
    ),
    "tests/protocols/local/test_ghazi_ldp.py": (
        "test_the_estimate_has_the_stated_mean_and_variance",
        "test_the_interactive_estimate_is_unbiased_with_about_the_stated_variance",
    ),
    "tests/protocols/u_mpc/test_degrees.py": (
        "test_nodes_are_neighbours_only_where_an_edge_joins_them",
        "test_only_records_that_share_an_edge_with_the_receiver_are_sent_to_it",
        "test_sums_of_every_degree_equal_the_clear_ones",
    ),
    "tests/protocols/u_mpc/test_garbled.py": (
        "test_any_tables_at_any_nodes",
        "test_garbled_as_under_shares_and_in_the_clear",
    ),
    "tests/protocols/u_mpc/test_garbled_noise.py": ("test_the_noise_is_what_the_coins_make",),
    "tests/protocols/u_mpc/test_garbled_views.py": (
        "test_power_a_protection_left_out_is_found",
        "test_what_a_node_sees_does_not_depend_on_the_others_records",
    ),
    "tests/protocols/u_mpc/test_library.py": (
        "test_a_node_whose_records_are_in_no_edge",
        "test_a_node_without_records_has_no_part_in_it_but_its_zero_share",
        "test_any_tables_at_any_nodes",
        "test_nodes_of_one_record_each",
        "test_under_shares_as_in_the_clear",
    ),
    "tests/protocols/u_mpc/test_noise_from_transfers.py": ("test_no_dealer_changes_the_noise",),
    "tests/protocols/u_mpc/test_several_sums.py": (
        "test_a_sum_that_no_record_can_change_has_no_noise",
        "test_each_sums_noise_has_its_own_exact_law",
        "test_each_sums_share_is_uniform_and_independent_of_the_others",
        "test_power_a_sum_without_its_own_zero_share_is_found",
        "test_power_one_noise_for_all_sums_is_found",
        "test_the_noises_of_two_sums_are_independent",
    ),
    "tests/protocols/u_mpc/test_two_sample.py": (
        "test_replacing_one_record_changes_the_sum_by_at_most_the_sensitivity",
    ),
    "tests/protocols/u_mpc/test_views.py": (
        "test_a_share_is_uniform_even_where_a_node_is_alone_with_its_edges",
        "test_power_a_study_without_a_protection_is_found",
        "test_power_a_study_without_zero_shares_is_found",
        "test_power_a_triple_without_a_protection_is_found",
        "test_power_noise_of_a_wrong_scale_is_found",
        "test_the_noise_of_a_study_has_the_exact_law",
        "test_the_report_says_how_large_the_noise_is",
        "test_what_others_see_of_a_study_does_not_depend_on_a_nodes_record",
        "test_what_others_see_of_a_triple_does_not_depend_on_a_nodes_record",
    ),
    "tests/system/test_backends.py": (
        "test_every_pair_statistic_is_the_same_by_both_backends_as_in_the_clear",
    ),
    "tests/system/test_bell_2pc.py": (
        "test_a_demo_of_a_large_epsilon_has_the_budget_that_its_finite_bits_take",
        "test_the_study_of_one_pairing_over_four_nodes",
    ),
    "tests/system/test_central.py": ("test_a_demo_over_all_pairs_is_near_the_exact_value",),
    "tests/system/test_coverage.py": ("test_",),
    "tests/system/test_degrees.py": (
        "test_an_owner_of_triples_that_fails_is_named_and_costs_nothing",
        "test_every_degree_is_exact_without_noise",
    ),
    "tests/system/test_demo.py": (
        "test_all_pairs_with_the_same_job_are_counted_exactly",
        "test_an_impossible_request_is_refused_before_any_process_starts",
        "test_the_noise_of_a_demo_has_the_formulas_standard_deviation",
        "test_the_noise_of_a_private_demo_is_what_the_report_says",
        "test_the_study_of_age_and_balance_has_the_known_exact_value",
        "test_without_noise_the_sum_over_e_is_exact",
    ),
    "tests/system/test_faults.py": ("test_a_node_that_fails_is_named_and_costs_nothing",),
    "tests/system/test_garbled.py": ("test_",),
    "tests/system/test_garbled_noise.py": (
        "test_a_demo_without_a_dealer_draws_noise_that_nobody_knows_at_its_predicted_cost",
    ),
    "tests/system/test_gopa.py": ("test_a_demo_is_near_the_exact_mean_at_the_predicted_cost",),
    "tests/system/test_grid.py": (
        "test_a_dealer_that_fails_is_named_and_costs_nothing",
        "test_a_demo_over_all_pairs_is_exact",
        "test_a_node_that_fails_is_named_and_costs_nothing",
        "test_all_pairs_with_the_same_job_are_counted_exactly",
        "test_every_other_statistic_is_the_clear_one",
        "test_the_error_of_many_runs_is_the_predicted_one",
    ),
    "tests/system/test_ledger_crash.py": ("test_",),
    "tests/system/test_noise_from_transfers.py": (
        "test_a_demo_draws_noise_of_either_kind_at_its_predicted_cost",
    ),
    "tests/system/test_onemessage.py": ("test_a_demo_is_near",),
    "tests/system/test_paid.py": (
        "test_a_node_that_is_killed_finishes_the_same_attempt_when_it_is_back",
        "test_messages_for_shufflers_are_finished_too",
    ),
    "tests/system/test_prepare.py": ("test_without_the_dealer_and_in_bounded_memory",),
    "tests/system/test_shuffled.py": (
        "test_the_same_study_is_shuffled_again_from_what_is_stored_and_costs_nothing",
    ),
    "tests/system/test_stream.py": ("test_killed_in_the_middle_of_a_stream",),
    "tests/system/test_tworounds.py": (
        "test_a_node_killed_between_its_messages_is_named_charged_once_and_answers_when_it_is_back",
    ),
    "tests/test_simulation.py": ("test_without_noise_the_estimate_is_the_mean_in_the_clear",),
    "tests/ustat/test_enumeration.py": (
        "test_the_order_of_few_values_stands_for_all_of_a_larger_domain",
    ),
    "tests/ustat/test_estimators.py": ("test_intervals_hold_the_value_without_noise",),
    "tests/ustat/test_kernel.py": (
        "test_an_accepted_kernel_is_symmetric_and_an_averaged_one_is_accepted",
    ),
    "tests/ustat/test_polynomial.py": (
        "test_a_random_kernel_and_its_normal_form_agree",
        "test_logic_over_three_comparisons_has_its_values_on_all_pairs_of_records",
    ),
    "tests/ustat/test_sampling.py": (
        "test_every_edge_is_equally_likely",
        "test_every_pair_of_two_samples_is_equally_likely",
        "test_every_small_size_is_distinct_and_balanced",
        "test_larger_sizes_are_distinct_and_balanced",
        "test_larger_two_sample_sizes_are_distinct_and_balanced",
        "test_power_a_sampler_that_prefers_an_edge_is_rejected",
    ),
    "tests/ustat/test_statistics.py": (
        "test_null_variances_are_those_of_all_equally_likely_tables",
    ),
    "tests/ustat/test_statistics_oracles.py": ("test_random_tables",),
}
"""File → the beginnings of its long functions' names."""


WHOLE = (
    "test_the_real_code_keeps_its_promise",
    "test_each_sums_noise_has_its_own_exact_law",
    "test_every_degree_is_exact_without_noise",
    "test_material_that_would_not_fit",
    "test_power_a_protection_left_out_is_found",
    "test_power_a_sum_without_its_own_zero_share_is_found",
    "test_power_noise_that_somebody_knows_is_found",
    "test_the_law_is_poisson",
    "test_tiny_log_ratio_has_the_gamma_law",
    "test_two_runs_lose_no_more_than_both_promise",
    "test_what_a_node_and_the_coordinator_see_does_not_depend",
    "test_what_a_node_sees_does_not_depend_on_the_others_records",
    "test_what_each_sees_has_the_stated_law",
)
"""Functions of which each case is long, so no case of them stays."""


def runs_now(test: str) -> bool:
    """Whether a test runs under the variables that are set. Args: test: its full name."""
    if AUDIT in os.environ:
        return True
    is_left_out = is_long(test) and not stays(test)
    return is_left_out == (ALONE in os.environ)


def is_long(test: str) -> bool:
    file, _, function = test.partition("::")
    return function.startswith(LONG.get(file, ())) if file in LONG else False


def stays(test: str) -> bool:
    """Whether this case of a long function stays in `make test`."""
    name = test.partition("::")[2]
    return "[" in name and not name.startswith(WHOLE) and crc32(test.encode()) % STAYS == 0
