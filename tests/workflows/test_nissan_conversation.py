"""A conversation about the sample corpus ends right without a model, whichever way it is held."""

from __future__ import annotations

import asyncio
import io
import json
import os
import sys
from collections.abc import Iterator, Sequence
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters, stdio_client
from openai import OpenAI

from tests.workflows.command_line import Mara
from tests.workflows.serving.page.site import on_a_port, site_of
from workflows.context import Context
from workflows.conversation.session import Conversation
from workflows.indexing import index_sources
from workflows.runtime.resources import OFFLINE, close_indexes
from workflows.settings.indexing import IndexingContext

QUESTIONS = ("When was Nissan founded?", "And who founded it?", "Where was he born?")
SERVE = "from workflows.cli.app import app; app()"


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    root = tmp_path_factory.mktemp("sample") / "workspace"
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith(("OPENAI_", "MARA_"))]:
            patch.delenv(name)
        with as_file(files("workflows.sample").joinpath("corpus.jsonl")) as corpus:
            index_sources([corpus], root, settings=IndexingContext(model=OFFLINE))
    yield root
    close_indexes()


def check_the_end(answers: Sequence[str], understood: Sequence[str]) -> None:
    """Check that it was 1933, Yoshisuke Aikawa, and Yamaguchi."""
    for word, answer in zip(("1933", "Aikawa", "Yamaguchi"), answers, strict=True):
        assert word in answer
    assert "Nissan" in understood[1]
    assert "Aikawa" in understood[2]


def test_from_python_and_at_the_command_line(sample: Path, mara: Mara, monkeypatch: pytest.MonkeyPatch) -> None:
    conversation = Conversation(Context(workspace=str(sample), model=OFFLINE))
    for question in QUESTIONS:
        list(conversation.ask(question))
    lines = io.TextIOWrapper(io.BytesIO("\n".join(QUESTIONS).encode()))
    monkeypatch.setattr(sys, "stdin", lines)
    done = mara("chat", "--workspace", sample, "--model", OFFLINE, "--json")
    for results in (conversation.results, [json.loads(line) for line in done.out.splitlines()]):
        check_the_end(
            [result["answer"] for result in results],
            [f"{result['question']} {(result['understood'] or {}).get('names')}" for result in results],
        )


def test_over_openai_s_api(sample: Path, tmp_path: Path) -> None:
    answers: list[str] = []
    thread: list[Any] = [{"role": "system", "content": "You are a helpful assistant."}]
    with on_a_port(site_of(sample, tmp_path)) as address:
        client = OpenAI(base_url=f"{address}/v1", api_key="none")
        for question in QUESTIONS:
            thread.append({"role": "user", "content": question})
            chunks = client.chat.completions.create(model="mara", messages=thread, stream=True)
            answers.append("".join(chunk.choices[0].delta.content or "" for chunk in chunks))
            thread.append({"role": "assistant", "content": answers[-1]})
    check_the_end(answers, [answer.partition("*Understood as: ")[2] for answer in answers])
    sources = [answer.partition("**Sources**\n\n")[2].splitlines() for answer in answers]
    assert sources[0] == ["- [1] Nissan · `corpus.jsonl`"]
    assert [line for line in sources[2] if "Yoshisuke Aikawa" in line]


def test_over_mcp(sample: Path) -> None:
    async def held() -> list[dict[str, Any]]:
        command = StdioServerParameters(command=sys.executable, args=["-c", SERVE, "serve", "mcp", "-w", str(sample)])
        results: list[dict[str, Any]] = []
        async with Client(stdio_client(command)) as client:
            for question in QUESTIONS:
                key = results[-1]["conversation"] if results else ""
                result = await client.call_tool("ask", {"question": question, "conversation": key})
                assert result.structured_content
                results.append(result.structured_content)
        return results

    results = asyncio.run(held())
    check_the_end([result["answer"] for result in results], [result["understood"] for result in results])
