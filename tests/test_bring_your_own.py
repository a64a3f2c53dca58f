"""The example of docs/bring-your-own.md, run as it stands there, beside a right and a wrong kernel."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs/bring-your-own.md").read_text()
LAB = f"""#!{sys.executable}
import sys
sys.path.insert(0, {str(ROOT)!r})
from cli.main import main
sys.exit(main())
"""
BRANCH = "def branch(x, lora_a, lora_b):\n    return (x @ lora_a) @ lora_b{}\n"


@pytest.mark.parametrize(("factor", "code"), [("", 0), (" / 2", 1)])
def test_a_kernel_is_judged_from_a_plain_test(tmp_path, factor, code):
    for name, text in re.findall(r"^```\w+ file=(\S+)\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL):
        (tmp_path / name).write_text(text)
    (tmp_path / "my_kernels.py").write_text(BRANCH.format(factor))
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/lab").write_text(LAB)
    (tmp_path / "bin/lab").chmod(0o755)
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(tmp_path)]
    path = f"{tmp_path}/bin{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        [*words, "test_my_kernels.py"],
        cwd=tmp_path,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stdout
    assert ("1/2 times the reference" in done.stdout) == (code == 1)
