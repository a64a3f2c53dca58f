"""When a swapped-in part brings a stage down: do the lab's own parts complete it?

The answer decides between an honest no (1: the part is to blame) and a run that could not be completed (3).
"""

import dataclasses
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from labs.core.launch import Framework
from labs.core.schedule import Ran, finish, needed, orders, start
from labs.core.trial import Trial

PATIENCE = 10.0, 120.0  # seconds: the least and the most that the own parts are given, after the run's own time


@dataclass(frozen=True)
class OwnParts:
    """What the lab's own parts made of the stages in which swapped-in ones failed; "" in `failure`: completed."""

    asked: bool = False
    failure: str = ""

    @property
    def complete(self) -> bool:
        """True when they were asked and came through."""
        return self.asked and not self.failure


def own_parts(trial: Trial, ran: Sequence[Ran], framework: Framework, scratch: Path, timeout: float) -> OwnParts:
    """Run the failed stages (and those that they come after) with the lab's own parts, at the run's config."""
    names = {r.stage.name for r in ran if r.failure}
    if not trial.case.swap or not names or all(r.unequipped for r in ran if r.failure):
        return OwnParts()
    lab, place = trial.settings.lab, scratch / "own"
    stages = needed(lab, [i for s in lab.stages if s.name in names for i in s.items])
    case = dataclasses.replace(
        trial.case, name="own", out=place / "out", scratch=place / "main", checkpoints=place / "checkpoints", swap={}
    )
    threads, log = trial.settings.threads, trial.folder / "log.txt"
    handed = orders(lab, stages, [case], name=str(place), share="stages", threads=threads, log=log)
    start(framework, handed)
    least, most = PATIENCE
    came = finish(framework, handed, time.monotonic() + min(max(timeout, least), most))
    return OwnParts(asked=True, failure=next((r.failure for r in came if r.failure), ""))
