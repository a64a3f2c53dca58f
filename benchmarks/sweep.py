"""Ten other seeds and ten other sizes of each lab: a correct run is never called wrong.

    python benchmarks/sweep.py [LAB…]

Each lab is one `lab run` of many configs without controls. Printed is the smallest headroom of each config, and what
failed, if anything did; the exit code is that of the worst run.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
SEEDS = tuple(range(1, 11))
SIZES: dict[str, tuple[str, ...]] = {
    "lora": (
        "rank: 1",
        "d_in: 4, d_out: 4",
        "batch: 1, positions: 1",
        "alpha: 64.0",
        "alpha: 0.05",
        "rank: 8, alpha: 16.0, scaling: rslora",
        "bits: 8, group: 2",
        "loss: squared_error",
        "d_in: 64, d_out: 96, rank: 16, batch: 4, positions: 16, classes: 33",
        "init: gaussian, steps: 10",
    ),
    "block": (
        "batch: 1, positions: 2",
        "batch: 3, positions: 9",
        "hidden: 16, heads: 4, kv_heads: 2",
        "heads: 1, kv_heads: 1",
        "heads: 2, kv_heads: 2",
        "ffn: 1",
        "vocabulary: 50",
        "rope: false",
        "supervised: last",
        "hidden: 32, ffn: 64, positions: 16",
    ),
    "packing": (
        "lengths: [3, 3, 3], micro_batches: [1, 2], ranks: [2, 1]",
        "truncation: left",
        "lengths: [2, 7, 4, 3]",
        "limit: 4",
        "vocabulary: 40",
        "d_model: 16, heads: 4, head_dim: 8",
        "heads: 1, head_dim: 2",
        "shards: 5",
        "micro_batches: [2, 2], window: 1",
        "ranks: [1, 1, 2]",
    ),
    "contrastive": (
        "world_size: 1",
        "world_size: 3, batch: 9",
        "world_size: 4",
        "batch: 8, shares: [5, 3]",
        "batch: 20",
        "d: 2",
        "d: 16, d_a: 33, d_b: 17",
        "log_scale: 0.0",
        "log_scale: 4.0",
        "micro_batches: [4]",
    ),
    "rules": ("theme: layers", "theme: training", "theme: labels", "theme: losses", "theme: lora", "theme: ranks"),
}


def configs(lab: str, folder: Path) -> list[Path]:
    """The YAML files of a lab's seeds and sizes."""
    texts = {f"{lab}-seed-{seed}": f"seed: {seed}" for seed in SEEDS}
    texts |= {f"{lab}-size-{n}": "\n".join(_lines(size)) for n, size in enumerate(SIZES[lab], 1)}
    paths = []
    for name, text in texts.items():
        paths.append(folder / f"{name}.yaml")
        paths[-1].write_text(f"lab: {lab}\nsave: none\n{text}\n")
    return paths


def _lines(size: str) -> list[str]:
    """`a: 1, b: [2, 3]` as one key a line."""
    lines: list[str] = []
    for piece in size.split(", "):
        if lines and ":" not in piece:
            lines[-1] += f", {piece}"
        else:
            lines.append(piece)
    return lines


def run(paths: list[Path], out: Path) -> dict[str, Any]:
    """The report of one run of all these configs."""
    code = "import sys; from cli.main import main; sys.exit(main())"
    words = ["run", *map(str, paths), "--no-controls", "--format", "json", "--out", str(out)]
    done = subprocess.run([sys.executable, "-c", code, *words], cwd=ROOT, capture_output=True, text=True, check=False)
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def show(lab: dict[str, Any], what: str) -> None:
    """One line for a config, and one for each thing that failed."""
    close = [c for c in lab["checks"] if c["kind"] == "close" and c["headroom"] is not None]
    tightest = min(close, key=lambda c: float(c["headroom"]))
    print(
        f"{lab['name']:<22} {lab['status']:<7} {float(tightest['headroom']):5.2f} decades  {tightest['name']}  ({what})"
    )
    for check in lab["checks"]:
        if check["status"] != "passed":
            print(f"    {check['name']} ({check['kind']}): {check['message']}")
    for sentence in (*lab["failures"], *lab["wiring"]["problems"]):
        print(f"    {sentence}")


def main(labs: list[str]) -> int:
    """Sweep these labs, by default all; the worst exit code."""
    worst = 0
    for lab in labs or list(SIZES):
        with tempfile.TemporaryDirectory() as folder:
            paths = configs(lab, Path(folder))
            report = run(paths, Path(folder) / "out")
            worst = max(worst, report["run"]["exit_code"])
            if "sentence" in report["run"]:
                print(f"{lab}: {report['run']['sentence']}")
            for path, found in zip(paths, report["labs"], strict=False):
                show(found, " ".join(path.read_text().split("\n")[2:]).strip())
    return worst


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
