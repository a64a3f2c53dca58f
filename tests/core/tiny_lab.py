"""A lab of a few stages, most of them hostile, and jobs for it: what test_launch and test_worker start for real."""

from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import numpy as np

from labs.core.process.jobs import Job, Task

ROOT = Path(__file__).resolve().parents[2]

FILES = {
    "config.py": """
from dataclasses import dataclass

@dataclass(frozen=True)
class Inner:
    steps: tuple[int, ...] = (1, 2)

@dataclass(frozen=True)
class Config:
    scale: float = 2.0
    inner: Inner = Inner()
""",
    "parts.py": """
from collections.abc import Callable
from dataclasses import dataclass

@dataclass(frozen=True)
class Parts:
    double: Callable
    mix: Callable
""",
    "torch_faults.py": """
import torch

def triple(x):
    return 3 * x

def broken(x):
    return x / int("0x")

class Wrong(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return 2 * x

    @staticmethod
    def backward(ctx, g):
        raise ArithmeticError("backward")

wrong_backward = Wrong.apply
NOT_CALLABLE = 3
""",
    "torch_impl.py": """
import ctypes, os, signal, socket, stat, subprocess, sys, time
import torch
import torch.distributed as dist
from .parts import Parts

PRELOAD = ("colorsys", "no_such_module")
PARTS = Parts(double=lambda x: 2 * x, mix=lambda x: x @ x.T)

def forward(config, inputs, parts, place):
    x = inputs["x"].requires_grad_()
    y = parts.mix(parts.double(x)) * config.scale
    y.sum().backward()
    return {"y": y, "grad/x": x.grad, "flag": True, "count": len(config.inner.steps), "size": 0.5}

def mutate(config, inputs, parts, place):
    before = inputs["x"].clone()
    inputs["x"].zero_()
    return {"before": before}

def leaky(config, inputs, parts, place):
    torch.set_grad_enabled(False)
    torch.set_default_dtype(torch.float64)
    return {"draw": torch.rand(3)}

def draw(config, inputs, parts, place):
    return {"draw": torch.rand(3, dtype=torch.float64), "grad": torch.is_grad_enabled()}

def segfault(config, inputs, parts, place):
    print("about to touch address 0")
    ctypes.string_at(0)

def leave(config, inputs, parts, place):
    os._exit(3)

def leave_politely(config, inputs, parts, place):
    os._exit(0)

def sys_exit(config, inputs, parts, place):
    sys.exit("enough")

def die(config, inputs, parts, place):
    os.kill(os.getpid(), signal.SIGKILL)

def hang(config, inputs, parts, place):
    subprocess.Popen(["sleep", "1000"])
    time.sleep(1000)

def shout(config, inputs, parts, place):
    for _ in range(40):
        print("x" * 100_000)
    os.write(1, b"\\xff\\x00raw")
    os.write(2, b"\\xfe\\n")
    print("the last words")
    return {"y": inputs["x"]}

def _to_sockets(data):
    for number in range(3, 64):
        try:
            if stat.S_ISSOCK(os.fstat(number).st_mode) or stat.S_ISFIFO(os.fstat(number).st_mode):
                os.write(number, data)
        except OSError:
            pass

def rubbish(config, inputs, parts, place):
    _to_sockets(b"\\x00\\xff{]\\n" * 10)
    time.sleep(1000)

def wrong_shape(config, inputs, parts, place):
    _to_sockets(b'{"outcome": {"task": "x"}}\\n[1]\\n')
    time.sleep(1000)

def deaf(config, inputs, parts, place):
    for number in range(3, 64):
        try:
            os.close(number)
        except OSError:
            pass
    return {}

def fail(config, inputs, parts, place):
    return 1 / 0

def fail_abroad(config, inputs, parts, place):
    raise ValueError("größer als 1 ≠ \\udcff")

class Unprintable(Exception):
    def __str__(self):
        raise RuntimeError

def fail_silently(config, inputs, parts, place):
    raise Unprintable

def ask(config, inputs, parts, place):
    return {"line": input()}

BAD = {
    "none": None,
    "list": [1],
    "float16": {"y": torch.zeros(2, dtype=torch.float16)},
    "complex": {"y": torch.zeros(2, dtype=torch.complex128)},
    "sparse": {"y": torch.eye(2).to_sparse()},
    "meta": {"y": torch.empty(2, device="meta")},
    "text": {"y": "text"},
    "none_item": {"y": None},
    "up": {"../y": 1},
    "absolute": {"/y": 1},
    "inside": {"a/../../y": 1},
    "upper": {"Y": 1},
    "empty": {"": 1},
    "newline": {"y\\n": 1},
    "number": {3: 1},
    "huge": {"y": 2**70},
}

def summed(config, inputs, parts, place):
    t = torch.full((2,), place.rank + 1.0, dtype=torch.float64)
    dist.all_reduce(t)
    return {f"rank{place.rank}/sum": t, f"rank{place.rank}/ranks": place.ranks}

def wait_for_rank_1(config, inputs, parts, place):
    if place.rank == 1:
        os.kill(os.getpid(), signal.SIGSEGV)
    return summed(config, inputs, parts, place)

def rank_1_raises(config, inputs, parts, place):
    if place.rank == 1:
        raise ValueError("only here")
    return summed(config, inputs, parts, place)

def rank_1_dies_late(config, inputs, parts, place):
    if place.rank == 1:
        time.sleep(0.2)
        os.kill(os.getpid(), signal.SIGKILL)
    raise RuntimeError("connection closed by peer")

def rank_1_hangs(config, inputs, parts, place):
    if place.rank == 1:
        time.sleep(1000)
    return summed(config, inputs, parts, place)

def one_reads(config, inputs, parts, place):
    # Rank 0 alone reads a part; the others see what it made of it.
    t = parts.double(inputs["x"]) if place.rank == 0 else torch.zeros_like(inputs["x"])
    dist.all_reduce(t)
    return {f"rank{place.rank}/sum": t}

def nobody_reads(config, inputs, parts, place):
    # Never the same twice; rank 0 leaves a file.
    t = torch.tensor(float(time.monotonic_ns()), dtype=torch.float64)
    dist.all_reduce(t)
    if place.rank == 0:
        (place.checkpoints / "state").write_text("left by rank 0")
    return {f"rank{place.rank}/now": t}

def all_raise(config, inputs, parts, place):
    raise ValueError("everywhere")

def same_name(config, inputs, parts, place):
    dist.barrier()
    return {"shared": place.rank}

STAGES = {name: value for name, value in globals().items() if callable(value) and name.islower() and name[0] != "_"}
STAGES |= {f"bad_{name}": (lambda *_, value=value: value) for name, value in BAD.items()}
""",
}


@dataclass
class Lab:
    """The lab's folder, and fresh folders for each job."""

    root: Path
    numbers: count = field(default_factory=count)

    def job(self, *stages, swap=None, packed=False, good="", ranks=1, threads=1, package="user_lab_tiny"):
        number = next(self.numbers)
        tasks = tuple(self.task(stage, number, index, swap or {}, packed, good) for index, stage in enumerate(stages))
        path = self.root / "tiny"
        return Job(f"job/{number}", package, str(path), tasks, ranks, threads, str(self.root / f"log/{number}.txt"))

    def task(self, stage, number, index, swap, packed, good):
        config = {"scale": 2.0, "inner": {"steps": [1, 2, 3]}}
        folders = [str(self.root / f"{name}/{number}-{index}") for name in ("out", "scratch", "checkpoints")]
        return Task(stage, config, swap, str(self.root / "inputs"), *folders, packed, good)


def write_lab(root):
    (root / "tiny").mkdir()
    for name, text in FILES.items():
        (root / "tiny" / name).write_text(text, encoding="utf-8")
    (root / "inputs").mkdir()
    np.save(root / "inputs" / "x.npy", np.arange(6.0).reshape(2, 3) + 1)
    return Lab(root)


def read(task, name):
    return np.load(Path(task.out, f"{name}.npy"), allow_pickle=False)


def alive(group):
    """Processes of a process group that are not zombies (their parent, whoever it is, has only to notice)."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                state, _, pgrp = (entry / "stat").read_text().rpartition(")")[2].split()[:3]
            except (OSError, ValueError):
                continue
            if int(pgrp) == group and state not in "ZX":
                found.append(int(entry.name))
    return found
