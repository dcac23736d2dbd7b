"""CI looks at recall on real questions wherever there are any."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

CI = Path(__file__).parents[1] / ".ci" / "run"
UNNAMED = {name: value for name, value in os.environ.items() if name != "MARA_DEVELOPMENT_DATA"}


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout whose `make` only says what it was asked for, and where the development data is."""
    folder = tmp_path / "checkout"
    (folder / ".ci").mkdir(parents=True)
    shutil.copy(CI, folder / ".ci" / "run")
    make = folder / "bin" / "make"
    make.parent.mkdir()
    make.write_text('#!/bin/sh\necho "make $1 with ${MARA_DEVELOPMENT_DATA:-nothing}"\n', encoding="utf-8")
    make.chmod(0o755)
    return folder


def made(checkout: Path, **environment: str) -> tuple[list[str], str]:
    """Run CI from another folder; return what was made with which data, and what was complained of."""
    done = subprocess.run(
        [str(checkout / ".ci" / "run")],
        cwd="/",
        env={**UNNAMED, **environment, "PATH": f"{checkout / 'bin'}:{os.environ['PATH']}"},
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    return [line for line in done.stdout.splitlines() if line.startswith("make ")], done.stderr


def every_step(data: Path | str) -> list[str]:
    return [f"make {step} with {data}" for step in ("lint", "test", "test-slow", "test-model")]


def test_development_data_that_the_environment_names_or_that_lies_beside_the_checkout_is_used(checkout: Path) -> None:
    steps, complained = made(checkout)
    assert steps == every_step("nothing")
    assert "recall on real questions is not measured" in complained
    data = checkout.parent / "shared" / "data"
    data.mkdir(parents=True)
    assert made(checkout) == (every_step(data), "")
    assert made(checkout, MARA_DEVELOPMENT_DATA="/elsewhere") == (every_step("/elsewhere"), "")
    steps, _ = made(checkout, MARA_DEVELOPMENT_DATA="")
    assert steps == every_step("nothing"), "an empty name leaves the data out"
