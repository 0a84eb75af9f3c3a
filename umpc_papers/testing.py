"""Steps and limits of the papers' protocols that tests replace by name, as in `umpc.testing`."""

from __future__ import annotations

from functools import partial

from umpc.testing import Limits, Steps
from umpc.testing import limited as limited_in
from umpc.testing import lying as lying_in

LOCAL = "umpc_papers.local"
SHUFFLE = "umpc_papers.ghazi_shuffle"
STEPS: Steps = {
    "node": {
        "umpc_papers.bell_2pc.node": "apply_all",
        "umpc_papers.gopa.node:GopaNode": "shared_noise",
        "umpc_papers.hajek_grid.node:TwoStepNode": "own_noise",
        "umpc_papers.hajek_grid.node": "bound_of",
        "umpc_papers.bell_2pc.group_node": "noise_of_pairs",
        f"{SHUFFLE}.messages": "mix_rows",
        f"{SHUFFLE}.messages:ShuffleMessages": "pads",
        "umpc_papers.ghazi_rounds.mechanism": "respond bernoulli",
    },
    "shuffler": {f"{SHUFFLE}.shuffler:ShufflerAttempt": "heap"},
    "coordinator": {
        "umpc_papers.ghazi_rounds.coordinator:RoundsCoordinator": "ask",
        "umpc_papers.central.messages:CuratorMessages": "choice usual_std",
    },
    "everybody": {
        "umpc_papers.bell_2pc.noise_binding": "epsilon_of_pair PairLaplace",
        "umpc_papers.bell_2pc.pair_mechanisms:PairLaplace": "coins",
        "umpc_papers.bell_2pc.group_mechanism:GroupLaplace": "noise draw",
        "umpc_papers.gopa.messages": "calibrate_pairwise",
        "umpc_papers.ghazi_rounds.protocol:GhaziRoundsProtocol": "messages",
        "umpc_papers.ghazi_rounds.mechanism": "groups",
        f"{SHUFFLE}.messages": "honest_records",
        f"{SHUFFLE}.mechanism:Embedding": "sensitivity",
        f"{SHUFFLE}.node": "shuffle_messages",
        f"{SHUFFLE}.shuffler": "shuffle_messages",
        f"{SHUFFLE}.coordinator": "shuffle_messages",
        f"{LOCAL}.bell_ldp": "truth_threshold",
        f"{LOCAL}.bell_auc": "truth_threshold",
        f"{LOCAL}.bin_search": "truth_threshold",
        f"{LOCAL}.ghazi_ldp": "truth_threshold",
        f"{LOCAL}.local_mean": "truth_threshold best_answer",
        f"{LOCAL}.bell_ldp_protocol": "split_epsilon",
        "umpc_papers.bell_2pc.pair_mechanisms:PairResponse": "wrong_odds",
        "umpc_papers.central.central_mechanisms:MedianOfMeans": "estimate",
        "umpc_papers.central.edges": "GlobalSensitivity",
        "umpc_papers.central.private_spread": "discrete_laplace",
        "umpc_papers.hajek_grid.binding:Projections": "own_width bound",
        f"{LOCAL}.auc_tree": "reported",
    },
}
"""Role → module or class → its steps, as in `umpc.testing.STEPS`."""

LIMITS: Limits = {
    "umpc_papers.bell_2pc.noise_binding": "BITS",
    "umpc_papers.bell_2pc.pair_mechanisms": "BITS",
    "umpc_papers.central.graph_terms": "MOST_VERTICES",
    "umpc_papers.exact_sampling": "CHUNK_BYTES",
    "umpc_papers.ghazi_shuffle.inbox": "MAX_PAYLOAD",
    "umpc_papers.ghazi_shuffle.messages": "AT_ONCE",
    "umpc_papers.hajek_grid.binding": "EXACT_FLOATS",
    "umpc_papers.local.bell_ldp_protocol": "TRIALS",
    "umpc_papers.local.cell_kernels": "MOST_PAIRS MOST_VALUES",
    "umpc_papers.local.tuning": "COUNTS",
    "umpc_papers.shuffler.run": "PATIENCE_SECONDS",
    "umpc_papers.shuffler.server": "REMEMBERED",
}
"""Module → its limits, as in `umpc.testing.LIMITS`."""

lying = partial(lying_in, table=STEPS)
"""`umpc.testing.lying` with these steps."""
limited = partial(limited_in, table=LIMITS)
"""`umpc.testing.limited` with these limits."""
