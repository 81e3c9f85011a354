"""What an experiment file says about the clock: the clients' devices, the server, and how long it waits."""

from __future__ import annotations

from statistics import NormalDist
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from fedfuse.core.part import Settings
from fedfuse.core.paths import PathText


class Constant(Settings):
    """The same for all devices; in a file, just the number."""

    kind: Literal["constant"] = "constant"
    value: float = Field(ge=0, description="of every device")

    def at(self, share: float) -> float:
        """The value below which this share of the devices is."""
        return self.value


class Uniform(Settings):
    """Any value of a range is as likely as any other."""

    kind: Literal["uniform"] = "uniform"
    low: float = Field(ge=0, description="the smallest value")
    high: float = Field(ge=0, description="the largest value")

    @model_validator(mode="after")
    def _low_is_lower(self) -> Self:
        if self.low > self.high:
            raise ValueError(f"low is {self.low:g}, but high is {self.high:g}")
        return self

    def at(self, share: float) -> float:
        """The value below which this share of the devices is."""
        return self.low + share * (self.high - self.low)


class LogNormal(Settings):
    """Half of the devices are below the median, and two thirds within a factor ``spread`` of it."""

    kind: Literal["lognormal"] = "lognormal"
    median: float = Field(gt=0, description="half of the devices are below it")
    spread: float = Field(ge=1, description="e to the power of sigma")

    def at(self, share: float) -> float:
        """The value below which this share of the devices is."""
        return self.median * float(self.spread ** NormalDist().inv_cdf(min(max(share, 1e-12), 1 - 1e-12)))


def _number_is_constant(value: Any) -> Any:
    return {"kind": "constant", "value": value} if isinstance(value, int | float | str) else value


Distribution = Annotated[Constant | Uniform | LogNormal, Field(discriminator="kind")]
Amount = Annotated[Distribution, BeforeValidator(_number_is_constant, json_schema_input_type=float | Distribution)]
"""A number, or a distribution of numbers over the devices."""


class DeviceSettings(Settings):
    """Devices drawn from the seed, each client's own for the whole run; an amount is a number or a distribution."""

    speed: Amount = Field(LogNormal(median=1e9, spread=2), description="floating-point operations per second")
    down: Amount = Field(LogNormal(median=1e6, spread=2), description="bytes per second to the client")
    up: Amount = Field(LogNormal(median=2.5e5, spread=2), description="bytes per second from the client")
    latency: Amount = Field(Constant(value=0.1), description="seconds until the first byte, in each direction")
    present: Amount = Field(
        Constant(value=1.0), description="share of each period in which a client is there, above 0 up to 1"
    )

    @model_validator(mode="after")
    def _shares_and_rates_can_be(self) -> Self:
        if not 0 < self.present.at(0) <= self.present.at(1) <= 1:
            raise ValueError("present is a share, or a uniform range of shares, above 0 and up to 1")
        for name in ("speed", "down", "up"):
            if not getattr(self, name).at(0):
                raise ValueError(f"{name} reaches 0, which would take for ever; raise it")
        return self


class ServerSettings(Settings):
    """The server, which merges and distils, and waits for nobody then."""

    speed: float = Field(1e11, gt=0, description="floating-point operations per second")


class ClockSettings(Settings):
    """Simulated seconds for every round. Without a deadline, absences and invitations it changes no result."""

    devices: DeviceSettings = Field(default_factory=DeviceSettings, description="what the clients run on")
    trace: PathText | None = Field(
        None, description="a file with a device in each row, .csv or .jsonl, instead of drawn ones (docs/clock.md)"
    )
    period: float = Field(86_400.0, gt=0, description="seconds after which presences repeat: a day")
    server: ServerSettings = Field(default_factory=ServerSettings, description="what the server runs on")
    deadline: float | None = Field(
        None, gt=0, description="seconds that the server waits in a round; who needs longer does not count"
    )
    invite: float = Field(
        1.0, ge=1, description="clients asked for each that is wanted; those who are ready first count"
    )

    @model_validator(mode="after")
    def _one_kind_of_devices(self) -> Self:
        if self.trace is not None and self.devices != DeviceSettings():
            raise ValueError("devices and trace both say what devices there are; keep one of them")
        return self
