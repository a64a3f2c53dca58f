"""The processes that run one job together, one a rank, as the worker sees them.

Standard library only, Python 3.10 syntax. A rank that dies ends the job: its siblings may be waiting for it in a
collective, so they are killed at once. A rank that raises ends the crew: siblings that do not answer soon are killed,
and the worker gives the tasks that are left to a new crew.
"""

import contextlib
import os
import signal
import socket
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from labs.core.process import whereabouts
from labs.core.process.jobs import Job, Outcome, outcome_from
from labs.core.process.wire import Lines, UnreadableError

GRACE = 0.5  # seconds that the siblings of a rank that raised have to raise too
_RSS_UNIT = 1 if sys.platform == "darwin" else 1024  # of ru_maxrss, in bytes


@dataclass(frozen=True)
class Seat:
    """What one child is to do: its rank in a job, the first task left, and the file through which ranks meet."""

    job: Job
    rank: int
    ranks: int
    first: int
    meeting: str
    parent: int  # the worker's process id

    @property
    def log(self) -> str:
        """The file that this child prints to: with siblings one of its own, so that its last words are its own."""
        return f"{self.meeting}.{self.rank}.log" if self.ranks > 1 and self.job.log else self.job.log

    @property
    def spot(self) -> str:
        """The file in which this child says where it is."""
        return f"{self.meeting}.{self.rank}.where"


Start = Callable[[Seat], tuple[int, socket.socket]]  # -> process id, our end of its line


@dataclass
class Member:
    """One child: its process id, the worker's end of its line, and how far it has come (indexes of tasks)."""

    seat: Seat
    pid: int
    line: socket.socket
    lines: Lines = field(default_factory=Lines)
    begun: int = -1
    answered: int = -1
    listening: bool = True
    alive: bool = True
    dismissed: bool = False  # killed by us: how it ends says nothing

    def dismiss(self) -> None:
        """Kill it, whatever it does."""
        if self.alive and not self.dismissed:
            self.dismissed = True
            os.kill(self.pid, signal.SIGKILL)

    def stage(self) -> str:
        """Where it is, for a sentence."""
        if self.begun > self.answered:
            return f"in stage {self.seat.job.tasks[self.begun].stage}"
        return "between stages" if self.begun >= 0 else "before its first stage"


class Crew:
    """One process a rank, from a job's task `first` on: `hear` what they say, `reap` them, until it is `done`.

    end: why it ended early, or ""; broken: the task in which a rank raised, or -1.
    """

    def __init__(self, seats: list[Seat], start: Start, begun: Callable[[int], None]) -> None:
        self.members: list[Member] = []
        self._outcomes: list[Outcome] = []
        self.end = ""
        self.broken = -1
        self._lost = -1  # the task in which a rank died
        self._culprit: Member | None = None  # whose end ended the crew
        self.peak = 0
        self.patience: float | None = None  # monotonic time at which `tick` has something to do
        self._begun = begun
        for seat in seats:
            try:
                self.members.append(Member(seat, *start(seat)))
            except OSError as error:
                self._abort(f"rank {seat.rank} could not be started: {error.strerror or error}")
                return

    @property
    def done(self) -> bool:
        """Whether every member has ended and was reaped."""
        return not any(member.alive for member in self.members)

    @property
    def outcomes(self) -> list[Outcome]:
        """What was answered. Where a rank died, that its siblings lost their connection is an echo of it."""
        return [o for o in self._outcomes if (o.task, o.status) != (self._lost, "raised")]

    @property
    def logs(self) -> list[str]:
        """The files that the members printed to, the one whose last words matter last."""
        own = sorted(self.members, key=lambda member: member is self._culprit)
        return [member.seat.log for member in own if member.seat.log != member.seat.job.log]

    def hear(self, member: Member) -> None:
        """Read what a member wrote, without waiting."""
        try:
            data = member.line.recv(1 << 16, socket.MSG_DONTWAIT)
            member.listening = bool(data)
            for message in member.lines.feed(data):
                self._note(member, message)
        except BlockingIOError:
            return
        except (UnreadableError, LookupError, TypeError, ValueError):
            member.listening = False
            self._blame(member, "sent an answer that can't be read")
        except ConnectionError:
            member.listening = False

    def reap(self) -> None:
        """Collect the members that have ended, after their last words."""
        for member in self.members:
            pid, status, usage = os.wait4(member.pid, os.WNOHANG) if member.alive else (0, 0, None)
            if pid and usage:
                member.alive = False
                self.peak += usage.ru_maxrss * _RSS_UNIT
                while member.listening and _readable(member.line):
                    self.hear(member)
                member.line.close()
                member.listening = False
                self._part(member, status)

    def tick(self, now: float) -> None:
        """Give up on the siblings of a rank that raised."""
        if self.patience is None or now < self.patience:
            return
        self.patience = None
        culprit = next(outcome.rank for outcome in self._outcomes if outcome.status == "raised")
        for member in self.members:
            if member.alive and member.answered < self.broken:
                error = f"stopped, because rank {culprit} raised in the same stage"
                self._outcomes.append(Outcome(self.broken, member.seat.rank, "raised", error=error))
            member.dismiss()

    def stop(self, why: str) -> None:
        """Kill the crew; what was answered until then stays. Ranks that only waited for others are not blamed."""
        if not self.members:
            return
        last = max(self.members, key=lambda member: member.begun)
        owing = [member for member in self.members if member.alive and member.answered < last.begun] or [last]
        found = whereabouts.spots({member.pid: member.seat.spot for member in owing})
        stuck = [(m, spot) for m, spot in zip(owing, found) if not spot.waiting] or list(zip(owing, found))  # noqa: B905
        where = next((f" at {spot.place}" for _, spot in stuck if spot.place), "")
        ranks = ", ".join(str(member.seat.rank) for member, _ in stuck)
        if len(stuck) == 1:
            self._blame(stuck[0][0], why, where)
        else:
            self._abort(f"ranks {ranks} {why.replace('was', 'were', 1)}, {last.stage()}{where}")

    def _note(self, member: Member, message: dict[str, Any]) -> None:
        if "begin" in message:
            member.begun = int(message["begin"])
            self._begun(member.begun)
        elif "outcome" in message:
            outcome = outcome_from(message["outcome"])
            if (outcome.task, outcome.rank) != (member.begun, member.seat.rank) or outcome.task == member.answered:
                raise UnreadableError("an outcome that nobody asked for")
            member.answered = outcome.task
            self._outcomes.append(outcome)
            if member.seat.ranks > 1:
                self._keep_in_step(outcome)

    def _keep_in_step(self, outcome: Outcome) -> None:
        """All ranks begin a task together; where one raised, none goes on."""
        if outcome.status == "raised" and self.broken < 0:
            self.broken, self.patience = outcome.task, time.monotonic() + GRACE
        if any(member.answered < outcome.task for member in self.members):
            return
        if self.broken >= 0:
            self.tick(self.patience or 0.0)
            return
        for member in self.members:
            with contextlib.suppress(OSError):  # it died: `reap` says how
                member.line.send(b"g")

    def _part(self, member: Member, status: int) -> None:
        complete = member.answered == len(member.seat.job.tasks) - 1
        if member.dismissed or (status == 0 and complete):
            return
        self._lost = member.begun
        if os.WIFSIGNALED(status):
            self._blame(member, f"was killed by {signal_name(os.WTERMSIG(status))}")
        else:
            early = "" if complete else " before it had answered"
            self._blame(member, f"exited with {os.WEXITSTATUS(status)}{early}")

    def _blame(self, member: Member, what: str, where: str = "") -> None:
        self._culprit = self._culprit or member
        who = f"rank {member.seat.rank} " if member.seat.ranks > 1 else ""
        self._abort(f"{who}{what}, {member.stage()}{where}")

    def _abort(self, end: str) -> None:
        self.end = self.end or end
        self.patience = None
        for member in self.members:
            member.dismiss()


def signal_name(number: int) -> str:
    """SIGSEGV for 11; a real-time signal by its number."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _readable(line: socket.socket) -> bool:
    try:
        return bool(line.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT))
    except OSError:
        return False
