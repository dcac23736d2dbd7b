"""Importing: no side effects, nothing heavy, one direction between our packages, and the short names."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Set
from functools import cache
from graphlib import CycleError, TopologicalSorter
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from workflows import Context, ask, retrieve, tools

ROOT = Path(__file__).parents[2]
PACKAGES = ("agents", "graph", "workflows", "prompts")
HEAVY = (
    *("chromadb", "openai", "langchain_openai", "igraph", "onnxruntime", "onnx", "bm25s", "tokenizers"),
    *("numba", "mcp", "ladybug", "neo4j", "nh3", "scipy.sparse.csgraph", "starlette", "uvicorn"),
    "prometheus_client",
)
NEED_AN_EXTRA = {
    "graph/walk/engines/compiled.py": {"numba"},
    "workflows/serving/mcp_server.py": {"mcp"},
    "workflows/serving/metrics.py": {"prometheus_client"},
    "workflows/serving/page/app.py": {"starlette"},
    "workflows/serving/page/endpoints.py": {"starlette"},
    "workflows/serving/page/openai_api.py": {"starlette"},
    "workflows/serving/guard.py": {"starlette"},
    "workflows/serving/page/requests.py": {"starlette"},
    "workflows/serving/service.py": {"prometheus_client"},
    "workflows/serving/page/workers.py": {"uvicorn"},
}
"""The files that are imported only where their package is wanted."""
MAY_IMPORT = {"prompts": set(), "graph": set(), "agents": {"graph", "prompts"}, "workflows": {"agents", "graph"}}
"""Which of our other packages each one may import."""

WATCHER = """
import importlib, json, logging, sys, threading

seen = []
modules = sys.argv[1:]

def watch(event, arguments):
    if event in ("socket.connect", "socket.sendto", "socket.getaddrinfo", "subprocess.Popen", "sqlite3.connect"):
        seen.append([event, repr(arguments)])
    elif event in ("os.mkdir", "os.rename", "os.remove", "shutil.copytree", "tempfile.mkstemp", "tempfile.mkdtemp"):
        seen.append([event, repr(arguments)])
    elif event == "open" and isinstance(arguments[1], str) and set(arguments[1]) & set("wax+"):
        seen.append([event, repr(arguments)])

sys.addaudithook(watch)
for name in modules:
    importlib.import_module(name)
print(json.dumps({
    "seen": seen,
    "modules": sorted(sys.modules),
    "threads": threading.active_count(),
    "log_handlers": len(logging.getLogger().handlers),
}))
"""


def workflow_modules() -> list[str]:
    """All modules of the workflows that need no extra."""
    needing = {ROOT / name for name in NEED_AN_EXTRA}
    paths = sorted(set((ROOT / "workflows").rglob("*.py")) - needing)
    names = (".".join(path.relative_to(ROOT).with_suffix("").parts) for path in paths)
    return [name.removesuffix(".__init__") for name in names]


@pytest.fixture(scope="module")
def fresh_process(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The effects of importing all modules of the workflows in a process of its own, in an empty folder."""
    folder = tmp_path_factory.mktemp("empty")
    environment = {name: value for name, value in os.environ.items() if name in ("PATH", "HOME", "LANG", "SYSTEMROOT")}
    done = subprocess.run(
        [sys.executable, "-c", WATCHER, *workflow_modules()],
        cwd=folder,
        env={**environment, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert list(folder.iterdir()) == []
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def test_importing_has_no_side_effect_and_loads_nothing_heavy(fresh_process: dict[str, Any]) -> None:
    assert fresh_process["seen"] == []
    assert (fresh_process["threads"], fresh_process["log_handlers"]) == (1, 0)
    assert not {*HEAVY} & {*fresh_process["modules"]}
    assert all(find_spec(package) for package in HEAVY), "they are installed, so that their absence means something"


def test_the_command_line_loads_what_its_commands_need_when_they_run() -> None:
    show = "import sys, workflows.cli.app; print(*sorted(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", show], capture_output=True, text=True, check=True, cwd=ROOT).stdout
    assert not {"numpy", "langgraph", "langchain_core", "graph.storage.record"} & set(loaded.split())


def test_imports_run_one_way() -> None:
    for package in PACKAGES:
        ours = {name: paths for name, paths in imported_packages(package).items() if name in PACKAGES}
        assert {name: paths for name, paths in ours.items() if name not in {*MAY_IMPORT[package], package}} == {}


def sources(package: str) -> list[Path]:
    return sorted((ROOT / package).rglob("*.py"))


@cache
def nodes_of(path: Path) -> list[ast.AST]:
    """A file's module and everything in it."""
    return list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))


def imported_names(path: Path) -> Iterator[str]:
    """The modules that a file imports, anywhere in it."""
    for node in nodes_of(path):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports by a relative name"
            yield node.module or ""


@cache
def imported_packages(package: str) -> dict[str, set[Path]]:
    """The top-level packages that any file of ours imports, with the files that do."""
    files: dict[str, set[Path]] = {}
    for path in sources(package):
        for name in imported_names(path):
            files.setdefault(name.partition(".")[0], set()).add(path.relative_to(ROOT))
    return files


def module_name(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def imported_modules(path: Path, known: Set[str]) -> set[str]:
    """Return the known modules that a file imports; ``from package import module`` imports that module alone."""
    names: set[str] = set()
    for node in nodes_of(path):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            inner = {f"{node.module}.{alias.name}" for alias in node.names} & known
            names |= inner or {node.module or ""}
    return names & known


@cache
def import_graph() -> dict[str, set[str]]:
    """The modules of ours that each module of ours imports, anywhere in its file."""
    files = {module_name(path): path for package in PACKAGES for path in sources(package)}
    return {name: imported_modules(path, files.keys()) - {name} for name, path in files.items()}


def circle(imports: Mapping[str, set[str]]) -> list[str]:
    """Return modules that import each other in a circle; none where there is no circle."""
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def test_no_modules_import_each_other() -> None:
    assert circle({"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": set()})
    assert len(import_graph()) > 200
    assert circle(import_graph()) == []


def test_only_workflows_know_langgraph_and_the_graph_no_chat_model() -> None:
    for package in ("agents", "graph", "prompts"):
        assert not imported_packages(package).keys() & {"langgraph", "langsmith", "langgraph_sdk", "langgraph_api"}
    packages = imported_packages("graph")
    assert not packages.keys() & {"langchain", "langchain_core"}
    assert {path.name for path in packages.get("langchain_openai", set())} <= {"embeddings.py"}


def test_nothing_unpickles_evaluates_or_counts_tokens_by_download() -> None:
    for package in PACKAGES:
        assert not imported_packages(package).keys() & {"pickle", "cloudpickle", "dill", "joblib", "shelve", "tiktoken"}
        for path in sources(package):
            calls = [node.func for node in nodes_of(path) if isinstance(node, ast.Call)]
            assert not {call.id for call in calls if isinstance(call, ast.Name)} & {"eval", "exec", "__import__"}, path


def reads_environment(path: Path) -> bool:
    """Whether a file reads the environment, or changes it."""
    names = {"environ", "environb", "getenv", "getenvb", "putenv", "unsetenv"}
    found = [node for node in nodes_of(path) if isinstance(node, ast.Attribute) and node.attr in names]
    imported = [node for node in nodes_of(path) if isinstance(node, ast.ImportFrom) and node.module == "os"]
    return bool(found) or any(names & {alias.name for alias in node.names} for node in imported)


def test_one_module_alone_reads_the_environment() -> None:
    reading = [path for package in PACKAGES for path in sources(package) if reads_environment(path)]
    assert [path.relative_to(ROOT).as_posix() for path in reading] == ["graph/environment.py"]


def test_the_heavy_packages_are_imported_within_functions_alone() -> None:
    for package in PACKAGES:
        for path in sources(package):
            module = nodes_of(path)[0]
            assert isinstance(module, ast.Module)
            at_import = [node for node in module.body if isinstance(node, ast.Import | ast.ImportFrom)]
            names = {
                name.partition(".")[0]
                for node in at_import
                for name in ([a.name for a in node.names] if isinstance(node, ast.Import) else [node.module or ""])
            }
            assert names & set(HEAVY) <= NEED_AN_EXTRA.get(path.relative_to(ROOT).as_posix(), set()), path


def test_each_name_is_there_whatever_modules_were_imported_before() -> None:
    import workflows.answering
    import workflows.explaining
    import workflows.streaming

    assert {name: getattr(workflows, name).__name__ for name in workflows.__all__} == {
        name: name for name in workflows.__all__
    }
    with pytest.raises(AttributeError, match="nothing"):
        getattr(workflows, "nothing")  # noqa: B009


def test_a_name_is_imported_when_it_is_first_used() -> None:
    show = "import sys, workflows; print({'langgraph', 'numpy'} & set(sys.modules)); from workflows import Context"
    done = subprocess.run([sys.executable, "-c", show], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


def test_passages_are_ranked_without_an_answer_and_tools_are_made_for_an_agent(small_workspace: Path) -> None:
    context = Context(workspace=str(small_workspace))
    passages = retrieve("Where does the Velm flow?", context)
    assert [hit["id"] for hit in passages["passages"]] == [
        hit["id"] for hit in ask("Where does the Velm flow?", context)["passages"]
    ]
    assert "answer" not in passages
    names = ["find_passages", "ask_documents", "discover_documents", "passage_provenance", "personalized_pagerank"]
    assert [tool.name for tool in tools(context)] == names
    assert [tool.name for tool in tools(Context(workspace=str(small_workspace), mode="dense"))] == names[:-1]


WORKFLOWS = ROOT / "workflows"

ORDER = (
    "installation",
    "output",
    "settings",
    "context",
    "states",
    "wording",
    "results",
    "access",
    "runtime",
    "nodes",
    *("retrieval", "mara", "ragenta"),
    *("answering", "streaming"),
    *("conversation", "chat"),
    *("discovery", "for_agents"),
    *("indexing_run", "indexing"),
    *("runs", "evaluation", "tuning"),
    "admin",
    *("explanation", "explaining"),
    "serving",
    "cli",
)
"""The rooms, folders and modules of the root, each of which imports only those before it."""


def room_of(path: Path) -> str:
    """Return the folder of workflows that a file is in, or its own name where it is in none."""
    return path.relative_to(WORKFLOWS).parts[0].removesuffix(".py")


def parts_imported(path: Path) -> Iterator[list[str]]:
    """Yield the parts of the names below workflows that a module imports, also within functions."""
    for node in nodes_of(path):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import | ast.ImportFrom) else []
        if isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{name}" for name in names]
        yield from (name.split(".")[1:] for name in names if name.startswith("workflows."))


def test_each_room_imports_only_those_before_it() -> None:
    paths = [path for path in WORKFLOWS.rglob("*.py") if room_of(path) not in ("__init__", "sample")]
    assert {room_of(path) for path in paths} == {*ORDER}
    back = {
        f"{path.relative_to(WORKFLOWS)} imports {room}"
        for path in paths
        for room, *_ in parts_imported(path)
        if ORDER.index(room) > ORDER.index(room_of(path))
    }
    assert not back


def test_no_folders_within_a_room_import_each_other_in_a_circle() -> None:
    folders = {path.parent for path in WORKFLOWS.rglob("*.py")} - {WORKFLOWS}
    arrows: dict[Path, set[Path]] = defaultdict(set)
    for path in (path for folder in folders for path in folder.glob("*.py")):
        for parts in parts_imported(path):
            named = [WORKFLOWS.joinpath(*parts[:length]) for length in range(1, len(parts) + 1)]
            deepest = max((folder for folder in named if folder in folders), default=path.parent)
            arrows[path.parent] |= {deepest} - {path.parent}
    assert {*TopologicalSorter(arrows).static_order()} <= folders
