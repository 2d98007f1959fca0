"""Smooth approximations of the step H(t), each with its derivative. A rank adds them up: 1 + Σ_j H(s_j − s_k)."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import torch

from .._errors import ConfigError


def check(name: str, value: float, *, least: float = 0.0, above: bool = False) -> None:
    """Refuses a number that is not finite, or below `least`."""
    if not math.isfinite(value) or value < least or (above and value == least):
        raise ConfigError(f"{name} is {value}", f"give a finite number {'above' if above else 'of at least'} {least:g}")


def check_share(name: str, value: float) -> None:
    """Refuses a number outside of 0 … 1."""
    if not 0 <= value <= 1:
        raise ConfigError(f"{name} is {value}", "give a number from 0 to 1")


def check_choice(name: str, value: str, *choices: str) -> None:
    """Refuses a word that is none of the choices."""
    if value not in choices:
        *most, last = (f'"{choice}"' for choice in choices)
        raise ConfigError(f"{name} is {value!r}", f"give {', '.join(most)} or {last}")


@dataclass(frozen=True)
class UpperStep:
    """H⁻, an upper bound of the step (ROADMAP, eq. 4; HAPPIER, eq. 44), for items that must not be above.

    σ(t/τ) for t ≤ 0, σ(t/τ) + start for 0 < t ≤ threshold, and slope · (t − threshold) + offset beyond. It is an upper
    bound if `start` is at least ½ and `offset` at least 1, but for t = 0, where it is ½.

    Parameters
    ----------
    temperature : float
        τ > 0, the width of the sigmoid.
    slope : float, optional
        The slope beyond the threshold. Without it there is only the sigmoid.
    threshold : float
        Where the line begins, at least 0.
    offset : float, optional
        The value at the threshold. By default the step is continuous.
    start : float
        What is added to the sigmoid above 0.
    """

    temperature: float = 0.01
    slope: float | None = 100.0
    threshold: float = 0.05
    offset: float | None = None
    start: float = 0.5

    def __post_init__(self) -> None:
        check("the temperature of the upper step", self.temperature, above=True)
        for name in ("slope", "threshold", "offset", "start"):
            check(f"the {name} of the upper step", getattr(self, name) or 0.0)

    def settings(self) -> dict[str, float | None]:
        """The step as core reads it."""
        if self.slope is None:
            return {"temperature": self.temperature, "slope": None}
        return asdict(self)

    def __call__(self, t: Any) -> tuple[Any, Any]:
        """The values and the derivatives of a tensor."""
        sigma = torch.sigmoid(t / self.temperature)
        slope = sigma * (1 - sigma) / self.temperature
        if self.slope is None:
            return sigma, slope
        offset = self.offset
        if offset is None:
            offset = 1 / (1 + math.exp(-self.threshold / self.temperature)) + self.start
        beyond = t > self.threshold
        value = torch.where(t > 0, sigma + self.start, sigma)
        line = (t - self.threshold) * self.slope + offset
        return torch.where(beyond, line, value), torch.where(beyond, self.slope, slope)


@dataclass(frozen=True)
class LowerStep:
    """H⁺, a lower bound of the step (HAPPIER, eq. 43), for items that should be above.

    leak · t for t ≤ 0, and min(slope · t + start, 1) above.
    """

    slope: float = 25.0
    start: float = 0.5
    leak: float = 10.0

    def __post_init__(self) -> None:
        for name in ("slope", "leak"):
            check(f"the {name} of the lower step", getattr(self, name))
        check_share("the start of the lower step", self.start)

    def __call__(self, t: Any) -> tuple[Any, Any]:
        """The values and the derivatives of a tensor."""
        line = t * self.slope + self.start
        slope = torch.where(line > 1, 0.0, self.slope).to(t.dtype)
        return torch.where(t > 0, line.clamp(max=1), t * self.leak), torch.where(t > 0, slope, self.leak)
