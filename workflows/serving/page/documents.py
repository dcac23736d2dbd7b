"""Documents that visitors add: files in a folder that the operator names, indexed into a workspace."""

from __future__ import annotations

import os
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

from graph.errors import BadInput, MaraError
from graph.sources.loaders import kinds, readable_hint
from graph.storage.workspace import Workspace
from workflows.output.printable import visible

FILE_BYTES = 50 * 2**20
"""The largest file."""

FILES_AT_ONCE = 50
"""Files of one drop."""

_NAME_BYTES = 200
_NAME_SHOWN = 80


class Taken(BadInput):
    """There is a document of that name.

    Attributes:
        status: the HTTP status to answer with.
    """

    status = 409


@dataclass(frozen=True)
class Uploads:
    """The folder of a workspace's documents that visitors added.

    Attributes:
        folder: where the files are.
        root: the workspace.
    """

    folder: Path
    root: Path

    async def take(self, name: str, parts: AsyncIterator[bytes], *, replace: bool = False) -> None:
        """Keep a file as it comes; it is there under its name when it is whole.

        Raises:
            BadInput: the name or kind cannot be used, or the file is empty or too large.
            Taken: there is a document of that name, and it is not to be replaced.
        """
        from asyncio import to_thread

        await to_thread(self._check, name, replace)
        incoming = self.folder / f".{uuid4().hex}.part"
        size = 0
        try:
            with await to_thread(incoming.open, "xb") as file:
                async for part in parts:
                    size += len(part)
                    if size > FILE_BYTES:
                        raise BadInput(
                            f"{name} is larger than {FILE_BYTES // 2**20} MB", "Split it, or ask the operator"
                        )
                    await to_thread(file.write, part)
            if not size:
                raise BadInput(f"{name} is empty", "Choose another file")
            await to_thread(incoming.replace, self.folder / name)
        finally:
            with suppress(OSError):
                await to_thread(incoming.unlink, missing_ok=True)

    def check_waiting(self, names: Sequence[str]) -> None:
        """Raise BadInput where a file that is to be indexed was never sent."""
        there = {path.name for path in self.folder.iterdir()} if self.folder.is_dir() else set()
        unknown = [ascii(name[:_NAME_SHOWN]) for name in dict.fromkeys(names) if name not in there]
        if unknown:
            raise BadInput(f"There is no file {', '.join(unknown)} to index", "Send each file first")

    def index(self, names: Sequence[str], replaced: Sequence[str], progress: Callable[[str, int, int], None]) -> Any:
        """Index the folder: what is new is added. Documents known by a replaced name go first.

        Returns:
            The report of the run, and of these files those that could not be read or hold no text, with the reasons;
            such a file is not kept.

        Raises:
            MaraError: as `workflows.indexing.index_sources` does.
        """
        from workflows.admin.removal import remove_passages
        from workflows.indexing import index_sources

        known = [name for name in replaced if name in self._known()]
        if known:
            remove_passages(self.root, sources=known)
        report = index_sources([self.folder], self.root, progress=progress)
        refused = [
            {"name": name, "reason": visible(each.reason)}
            for each in (*report.refused, *report.skipped)
            if (name := Path(each.source).name) in names
        ]
        for each in refused:
            (self.folder / each["name"]).unlink(missing_ok=True)
        return {
            "added": report.added,
            "passages": report.passages,
            "facts": report.facts,
            "failed": report.failed_count,
            "refused": refused,
            "notes": dict(report.notes),
        }

    def _check(self, name: str, replace: bool) -> None:
        check_name(name)
        self.folder.mkdir(parents=True, exist_ok=True)
        if not replace and ((self.folder / name).exists() or name in self._known()):
            raise Taken(f"There is a document {name}", "Replace it, or give the file another name")

    def _known(self) -> set[str]:
        """Return the sources that the workspace holds; none where there is no workspace yet."""
        try:
            with Workspace(self.root).open_record() as record:
                return set(record.sources().values())
        except MaraError:
            return set()


def check_name(name: str) -> None:
    """Raise BadInput for a name that no file should have, or a kind that is not read."""
    plain = visible(name)
    is_plain = name == plain == name.strip() and name.isprintable() and not set('/\\:*?"<>|') & set(name)
    if not is_plain or name.startswith(".") or len(os.fsencode(name)) > _NAME_BYTES:
        raise BadInput(
            f"{plain[:_NAME_SHOWN]!a} cannot be the name of a file here",
            "Use a shorter name of letters, digits, spaces and .-_(), without a leading point",
        )
    if Path(name).suffix.lower() not in kinds():
        raise BadInput(f"{name} is of a kind that is not read", readable_hint())


async def indexed(
    work: Callable[[Callable[[str, int, int], None]], Any], told_of: Callable[[Exception], str]
) -> AsyncIterator[tuple[str, dict[str, Any]]]:
    """Do the work of an indexing run in a thread of its own and yield how far it is, then what came of it.

    Leaving the iterator does not stop the run.

    Args:
        work: the run, which is given what to tell its progress to.
        told_of: returns what visitors may be told of an error.

    Yields:
        The kind and the values of an event: ``progress`` again and again, and at last ``ended`` or ``failed``.
    """
    import asyncio

    loop = asyncio.get_running_loop()
    events: asyncio.Queue[tuple[str, dict[str, Any]]] = asyncio.Queue()

    def tell(kind: str, **values: Any) -> None:
        with suppress(RuntimeError):  # The loop is closed: no window listens any more.
            loop.call_soon_threadsafe(events.put_nowait, (kind, values))

    def run() -> None:
        try:
            report = work(lambda stage, done, total: tell("progress", stage=stage, done=done, total=total))
            tell("ended", report=report)
        except Exception as fault:
            tell("failed", message=told_of(fault))

    threading.Thread(target=run, name="page-indexing", daemon=True).start()
    kind = ""
    while kind not in ("ended", "failed"):
        kind, values = await events.get()
        yield kind, values
