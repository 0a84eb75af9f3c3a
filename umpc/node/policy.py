"""What a site's administrator allows, beyond the budget."""

from __future__ import annotations

from dataclasses import dataclass

from umpc.errors import PolicyRefused
from umpc.study import Study


@dataclass(frozen=True)
class Policy:
    """kernels: the hashes of those that may be computed here; None allows any."""

    kernels: frozenset[str] | None = None

    def check(self, study: Study, node: str) -> None:
        """Raises: PolicyRefused naming the rule."""
        for kernel in study.parsed_kernels:
            if self.kernels is not None and kernel.hash not in self.kernels:
                raise PolicyRefused(
                    f"{node} allows only certain kernels, and not {kernel.hash[:16]}… ({kernel.text[:200]}); its "
                    f"administrator may add the hash {kernel.hash} to kernels under [policy]",
                    culprit=node,
                    step="propose",
                )


ANYTHING = Policy()
