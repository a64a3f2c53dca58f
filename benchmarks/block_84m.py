"""What it costs to check 84 million gradient elements, as ratios to torch's own forward and backward pass.

Run as `python benchmarks/block_84m.py`. In one run: torch alone (time of a pass, peak memory of the process), the whole
command `lab run block-84m` with its controls, and what torch.autograd.gradcheck would take for as many elements,
extrapolated from a size at which it runs. The clock on the wall also measures whatever else the machine does; CPU time
says what the work was, and half of it is what two CPUs could make of it.
"""

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

LAB = "import sys; from cli.main import main; sys.exit(main())"
PASSES = 3
YEAR = 365.25 * 24 * 3600  # seconds


def main() -> None:
    """Print the ratios; with a role, be one of the processes that are measured, and print JSON."""
    parser = argparse.ArgumentParser(description="the cost of `lab run block-84m` against torch alone")
    parser.add_argument("role", nargs="?", choices=("torch", "gradcheck"))
    parser.add_argument("--config", default="block-84m", help="of the block lab; a small one shows that all this works")
    given = parser.parse_args()
    if given.role:
        print(json.dumps(torch_alone(given.config) if given.role == "torch" else gradcheck()))
    else:
        report(child("torch", given.config), whole_command(given.config), child("gradcheck", given.config))


def report(alone: dict[str, float], whole: dict[str, float], small: dict[str, float]) -> None:
    """Both ratios of the budget, and the extrapolation."""
    time_ratio, memory_ratio = whole["seconds"] / alone["seconds"], whole["peak"] / alone["peak"]
    print(f"torch alone  {alone['seconds']:7.2f} s forward and backward  {alone['peak'] / 1e9:5.2f} GB")
    print(f"lab run      {whole['seconds']:7.2f} s the whole command     {whole['peak'] / 1e9:5.2f} GB, both processes")
    even = _on_two(whole, alone)
    print(
        f"CPU time     {whole['cpu']:7.2f} s; of torch's pass {alone['cpu']:.2f} s; two CPUs, evenly used: {even:.2f}"
    )
    print(f"ratio        {time_ratio:7.2f}   (at most 2.5)         {memory_ratio:5.2f}   (at most 2.5)")
    passes = small["seconds"] / small["forward"] / small["elements"]
    years = whole["elements"] * passes * alone["forward"] / YEAR
    print(
        f"gradcheck    {small['elements']:.0f} elements take {small['seconds']:.2f} s: {passes:.1f} forward passes each"
    )
    print(f"             {whole['elements']:,.0f} elements would take {years:.1f} years")


def _on_two(whole: dict[str, float], alone: dict[str, float]) -> float:
    """How many of torch's passes the command would take if two CPUs shared its work evenly and did nothing else."""
    return whole["cpu"] / 2 / alone["cpu"]


def child(role: str, config: str) -> dict[str, float]:
    """What this file prints in a process of its own."""
    command = [sys.executable, __file__, role, "--config", config]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def whole_command(config: str) -> dict[str, float]:
    """Seconds, peak memory of both processes, and how many gradient elements of parameters and x were compared."""
    with tempfile.TemporaryDirectory() as out:
        began, before = time.perf_counter(), _cpu_of_children()
        subprocess.run([sys.executable, "-c", LAB, "run", config, "--out", out, "-q"], check=True, cwd=ROOT)
        seconds, cpu = time.perf_counter() - began, _cpu_of_children() - before
        entry = json.loads((Path(out) / "latest" / "report.json").read_text())["labs"][0]
    names = ("grad/gamma_", "grad/w_", "grad/x")
    elements = sum(c["count"] for c in entry["checks"] if c["name"].startswith(names) and c["kind"] == "close")
    return {"seconds": seconds, "cpu": cpu, "peak": sum(entry["peak_rss_bytes"].values()), "elements": elements}


def _cpu_of_children() -> float:
    """Seconds of CPU time of all processes that were waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def torch_alone(name: str) -> dict[str, float]:
    """Median seconds of a forward and of a whole pass, peak memory in bytes; nothing else runs beside it."""
    from labs.core.config import resolve  # noqa: PLC0415 - the measured command must not share this process

    settings = resolve(name)
    tensors = _tensors(settings.config, settings.seed, settings.threads)
    timed = [_pass(settings.config, tensors) for _ in range(PASSES)]
    forward, whole, cpu = (statistics.median(seconds) for seconds in zip(*timed, strict=True))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    return {"forward": forward, "seconds": whole, "cpu": cpu, "peak": peak}


def gradcheck() -> dict[str, float]:
    """What torch.autograd.gradcheck takes at the lab's default sizes, and a forward pass there."""
    import torch  # noqa: PLC0415

    from labs.block.config import Config  # noqa: PLC0415

    config = Config()
    tensors = _tensors(config, seed=0, threads=1)
    forward = statistics.median(_pass(config, tensors)[0] for _ in range(20))
    names = [name for name, tensor in tensors.items() if tensor.requires_grad]
    began = time.perf_counter()
    torch.autograd.gradcheck(
        lambda *leaves: _loss(config, {**tensors, **dict(zip(names, leaves, strict=True))}),
        tuple(tensors[name] for name in names),
    )
    seconds = time.perf_counter() - began
    return {"forward": forward, "seconds": seconds, "elements": sum(tensors[name].numel() for name in names)}


def _tensors(config: Any, seed: int, threads: int) -> dict[str, Any]:
    """The lab's inputs; x and the parameters want gradients."""
    import torch  # noqa: PLC0415

    from labs.block.inputs import inputs  # noqa: PLC0415
    from labs.block.torch_layer import PARAMETERS  # noqa: PLC0415
    from labs.core.inputs import Draw  # noqa: PLC0415

    torch.set_num_threads(threads)
    tensors = {name: torch.from_numpy(array) for name, array in inputs(config, Draw(seed)).items()}
    return {name: tensor.requires_grad_(name in ("x", *PARAMETERS)) for name, tensor in tensors.items()}


def _pass(config: Any, tensors: dict[str, Any]) -> tuple[float, float, float]:
    """Seconds of a forward pass, of forward and backward together, and the CPU time of both."""
    for tensor in tensors.values():
        tensor.grad = None
    began, before = time.perf_counter(), time.process_time()
    loss = _loss(config, tensors)
    forward = time.perf_counter() - began
    loss.backward()
    return forward, time.perf_counter() - began, time.process_time() - before


def _loss(config: Any, tensors: dict[str, Any]) -> Any:
    from labs.block.torch_layer import layer, objective  # noqa: PLC0415
    from labs.block.torch_parts import PARTS  # noqa: PLC0415

    output = layer(config, PARTS, tensors, tensors["x"])["residual_2"]
    return objective(config, PARTS, tensors, output, tensors["labels"], tensors["weights"])["loss"]


if __name__ == "__main__":
    main()
