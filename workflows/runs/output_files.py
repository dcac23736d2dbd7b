"""The file that a command writes for its user: never one of a workspace or of a run."""

from __future__ import annotations

import os
from pathlib import Path

from graph.errors import BadInput
from graph.storage.workspace import Workspace
from workflows.runs.batch_rows import BATCH
from workflows.runs.evaluation_files import EVALUATION


def check_output(path: Path, suffix: str) -> None:
    """Refuse a file that is no place for what a command writes, so that nothing of mara's own is overwritten.

    Args:
        path: the file to write.
        suffix: what its name ends in, in any case.

    Raises:
        BadInput: the name ends otherwise, the folder is missing, or the file lies in a workspace or a run.
    """
    if path.suffix.lower() != suffix:
        raise BadInput(f"{path} does not end in {suffix}", f"Name a file that ends in {suffix}")
    if path.is_dir() or not path.parent.is_dir():
        raise BadInput(f"{path} cannot be written", "Name a file in an existing folder")
    check_outside(path)


def check_outside(path: Path) -> None:
    """Raise BadInput if a file would be written into a workspace, at any depth, or beside the settings of a run."""
    folder = Path(os.path.realpath(path.parent))
    if any(Workspace(each).record_path.exists() for each in (folder, *folder.parents)):
        raise BadInput(f"{path} lies in a workspace", "Name a file outside: mara manages what is in there")
    if any((folder / kind.settings).exists() for kind in (EVALUATION, BATCH)):
        raise BadInput(f"{path} lies in the folder of a run", "Name a file outside: mara manages what is in there")
