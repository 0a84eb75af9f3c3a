"""How often a test rejects a hypothesis that is true: the p-values of `umpc/inference`.

A test at level α may reject in at most α of all studies. Each row is a statistic at one ε, over
records for which its hypothesis is true, with noise of the exact law. The last column is the share
at α = 5 % minus α, in standard errors of the simulation.

    python -m bench.type_one                       10,000 studies of each row
    python -m bench.type_one --runs 2000 --edges 2n
    python -m bench.type_one --ties 5              columns of five values

`--ties` also tries tau*, for which nobody has proved a bound with ties.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import comb, sqrt

import numpy as np
from numpy.typing import NDArray

from bench.coverage import laplace
from bench.table import show
from umpc.inference.hypotheses import ALTERNATIVES, GREATER, HYPOTHESES, LESS, DrawnRecords
from umpc.inference.report_inference import p_value
from umpc.study.possible import MAX_NUMBER if False else None  # placeholder
