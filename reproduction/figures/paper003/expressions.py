"""The asymptotic expressions of tables 1 and 3, as functions of n, t and ε, without constants."""

from __future__ import annotations

from collections.abc import Callable
from math import log, log2

Expression = Callable[[float, float, float], float]

ELEMENT_BITS = 40
"""ℓ, the bits of one number."""

ERROR: dict[str, tuple[str, Expression]] = {
    "Bell (LDP)": ("1/t² + t²/(nε²)", lambda n, t, e: t**-2 + t**2 / (n * e * e)),
    "Ghazi": ("1/t² + t² log t/(nε²)", lambda n, t, e: t**-2 + t**2 * log(t) / (n * e * e)),
    "GhaziSM": ("1/t² + t² log t/(n²ε²)", lambda n, t, e: t**-2 + t**2 * log(t) / (n * e) ** 2),
    "Umpc": ("1/|E| + 1/(n²ε²)", lambda n, t, e: 1 / (2 * n) + 1 / (n * e) ** 2),
}
BITS: dict[str, tuple[str, Expression]] = {
    "Bell (LDP)": ("nℓt", lambda n, t, e: n * ELEMENT_BITS * t),
    "Ghazi": ("n²ε² log t ℓ", lambda n, t, e: (n * e) ** 2 * log(t) * ELEMENT_BITS),
    "GhaziSM": (
        "log n n²ε² log t ℓ",
        lambda n, t, e: log2(n) * (n * e) ** 2 * log(t) * ELEMENT_BITS,
    ),
    "Umpc": ("|E|ℓ + nℓ", lambda n, t, e: 3 * n * ELEMENT_BITS),
}
PARTY: dict[str, tuple[str, Expression]] = {
    "Bell (LDP)": ("t", lambda n, t, e: t),
    "Ghazi": ("ε²nt log t", lambda n, t, e: e * e * n * t * log(t)),
    "GhaziSM": ("ε²nt log t + t log n", lambda n, t, e: e * e * n * t * log(t) + t * log2(n)),
    "Umpc": ("|E|/n + n", lambda n, t, e: 2 + n),
}
SERVER: dict[str, tuple[str, Expression]] = {
    "Bell (LDP)": ("n²t²", lambda n, t, e: (n * t) ** 2),
    "Ghazi": ("ε²n² log t", lambda n, t, e: (e * n) ** 2 * log(t)),
    "GhaziSM": ("log n ε²n² log t", lambda n, t, e: log2(n) * (e * n) ** 2 * log(t)),
    "Umpc": ("n", lambda n, t, e: n),
}
POPULATION: dict[str, tuple[str, Expression]] = {
    **{name: ERROR[name] for name in ("Bell (LDP)", "Ghazi")},
    "Umpc": ("1/n", lambda n, t, e: 1 / n),
}
"""Table 3. The paper omits the sampling of records from the first two, whose noise is larger."""
