"""The two sides share inputs and names, nothing else. Read from the imports, so that it is a fact and no promise."""

import ast
import sys
from pathlib import Path

import pytest

import labs

LABS = Path(labs.__file__).parent
ENGINE_OF_WORKER = {  # what the framework process may import of the engine
    "setting", "place", "worker", "process.crew", "process.facts", "process.interpreter", "process.jobs",
    "process.lifeline", "process.log", "process.mark", "process.origin", "process.pack", "process.preload",
    "process.reuse", "process.running", "process.sentence", "process.start", "process.swap", "process.torch_child",
    "process.torch_difference", "process.torch_form", "process.torch_graph", "process.torch_guard",
    "process.torch_items", "process.torch_task", "process.whereabouts", "process.wire",
}  # fmt: skip


def imports(path):
    """Every module that a file names in an import, at any depth, relative ones resolved."""
    package = ("labs", *path.relative_to(LABS).parts[:-1])
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) + 1 - node.level] if node.level else ()
            module = ".".join((*base, *(node.module or "").split("."))).strip(".")
            yield module
            yield from (f"{module}.{alias.name}" for alias in node.names)


def files(pattern):
    return sorted(LABS.glob(pattern))


def worker_side():
    named = [p for name in labs.NAMES for p in (LABS / name).glob("*.py") if is_worker_side(p)]
    engine = [LABS / "core" / (module.replace(".", "/") + ".py") for module in ENGINE_OF_WORKER]
    return [*named, *engine]


def is_worker_side(path):
    return path.name in ("parts.py", "config.py") or path.name.startswith("torch_")


def test_only_torch_files_and_the_worker_import_torch():
    for path in files("**/*.py"):
        if not path.name.startswith("torch_") and path.name not in ("worker.py", "preload.py"):
            tree = ast.parse(path.read_text())
            guarded = {
                inner
                for node in ast.walk(tree)
                if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING"
                for inner in ast.walk(node)
            }
            for node in ast.walk(tree):
                if isinstance(node, ast.Import) and node not in guarded:
                    assert not any(a.name.split(".")[0] == "torch" for a in node.names), path
                if isinstance(node, ast.ImportFrom) and node not in guarded:
                    assert (node.module or "").split(".")[0] != "torch", path


def test_the_torch_side_reads_nothing_of_the_numpy_side():
    for path in worker_side():
        for module in imports(path):
            parts = module.split(".")
            assert "kernels" not in parts, path
            assert not any(
                part.startswith("reference") or part in ("inputs", "controls", "lab") for part in parts[2:]
            ), (
                path,
                module,
            )


def test_the_numpy_side_reads_nothing_of_the_torch_side():
    numpy_side = files("kernels/*.py")
    numpy_side += [
        p for name in labs.NAMES for p in (LABS / name).glob("*.py") if p.name.startswith(("reference", "inputs"))
    ]
    for path in numpy_side:
        for module in imports(path):
            assert not any(part.startswith("torch") or part == "parts" for part in module.split(".")), (path, module)


def test_the_framework_process_needs_the_standard_library_numpy_and_torch_alone():
    allowed = {*sys.stdlib_module_names, "numpy", "torch"}
    for path in worker_side():
        for module in imports(path):
            top, *rest = module.split(".")
            if top != "labs":
                assert top in allowed, (path, module)
            elif rest[:1] == ["core"] and len(rest) > 1:
                inner = rest[2:] if rest[1] == "process" else rest[1:]
                prefix = "process." if rest[1] == "process" else ""
                assert not inner or prefix + inner[0] in ENGINE_OF_WORKER, (path, module)


@pytest.mark.parametrize("path", worker_side(), ids=lambda p: str(p.relative_to(LABS)))
def test_worker_side_files_are_python_3_10(path):
    ast.parse(path.read_text(), feature_version=(3, 10))


def test_a_config_has_no_methods_and_no_derived_values():
    for name in labs.NAMES:
        tree = ast.parse((LABS / name / "config.py").read_text())
        assert not [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.Lambda)], name
