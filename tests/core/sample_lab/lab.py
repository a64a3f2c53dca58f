"""The smallest record that is a lab: what the config tests need, and nothing that computes."""

from labs.core.lab import Lab

from .config import Config


def problems(config: Config) -> list[tuple[str, str]]:
    if config.rank > 64:
        return [("rank", f"{config.rank} is more than the width 64")]
    if config.sgd.steps > config.rank * 1000:
        return [("sgd.steps", "too many for this rank")]
    return []


LAB = Lab(
    name="sample",
    title="A lab of the tests",
    equations="y = x",
    items={},
    config=Config,
    inputs=lambda _config, _draw: {},
    reference=lambda _config, _inputs: {},
    rules=lambda _config: (),
    witnesses=(),
    stages=(),
    controls=(),
    footprint=lambda _config: 0,
    problems=problems,
)
