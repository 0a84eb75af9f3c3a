"""One line of `umpc node doctor`: what a check found, in words and as JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import ParamSpec

from umpc.errors import ConfigError, UmpcError

Given = ParamSpec("Given")
GOOD, NEUTRAL, RED = "ok", "--", "!!"


@dataclass(frozen=True)
class Finding:
    """The outcome of one check. `error` is what is wrong; a neutral finding decides nothing."""

    check: str
    text: str = ""
    error: UmpcError | None = None
    is_neutral: bool = False

    @property
    def mark(self) -> str:
        """The first word of the line."""
        if self.error is not None:
            return RED
        return NEUTRAL if self.is_neutral else GOOD

    def __str__(self) -> str:
        return f"{self.mark}  {self.check}: {self.words}"

    @property
    def words(self) -> str:
        """The finding in one line. The command is local, so it shows the error's detail, too."""
        if self.error is None:
            return self.text
        detail = f" ({self.error.detail})" if self.error.detail else ""
        return f"{self.error.message}{detail}"

    def as_dict(self) -> dict[str, str | None]:
        """Return the finding for JSON."""
        state = {GOOD: "ok", NEUTRAL: "neutral", RED: "failed"}[self.mark]
        kind = type(self.error).__name__ if self.error else None
        return {"check": self.check, "state": state, "text": self.words, "error": kind}


def neutral(check: str, text: str) -> Finding:
    """Return a finding that is neither good nor wrong."""
    return Finding(check, text, is_neutral=True)


def attempt(
    check: str, part: Callable[Given, Iterable[Finding]], *args: Given.args, **kwargs: Given.kwargs
) -> Iterator[Finding]:
    """Yield the findings of one part. An error ends the part with one red line."""
    try:
        yield from part(*args, **kwargs)
    except UmpcError as error:
        yield Finding(check, error=error)
    except OSError as error:
        reason = f"{error.filename}: {error.strerror}. Correct the path, the owner or the mode"
        yield Finding(check, error=ConfigError(reason))


def exit_code(findings: Iterable[Finding]) -> int:
    """Return the exit code of the first error, or 0 if there is none."""
    return next((each.error.exit_code for each in findings if each.error), 0)
