"""A conversation about the sample corpus ends right without a model, whichever way it is held."""

from __future__ import annotations

import asyncio
import io
import json
import os
import subprocess
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
COMMAND = "from workflows.cli.app import main; main()"
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


def ends_right(answers: Sequence[str], understood: Sequence[str]) -> bool:
    """Whether it was 1933, Yoshisuke Aikawa, and Yamaguchi."""
    when, who, where = answers
    assert "1933" in when
    assert "Aikawa" in who
    assert "Yamaguchi" in where
    assert "Nissan" in understood[1]
    assert "Aikawa" in understood[2]
    return True


def of_results(results: Sequence[Any]) -> bool:
    return ends_right(
        [result["answer"] for result in results],
        [f"{result['question']} {(result['understood'] or {}).get('names')}" for result in results],
    )


def test_from_python(sample: Path) -> None:
    conversation = Conversation(Context(workspace=str(sample), model=OFFLINE))
    for question in QUESTIONS:
        list(conversation.ask(question))
    assert of_results(conversation.results)


def test_at_the_command_line(sample: Path, mara: Mara, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = io.TextIOWrapper(io.BytesIO("\n".join(QUESTIONS).encode()))
    monkeypatch.setattr(sys, "stdin", lines)
    done = mara("chat", "--workspace", sample, "--model", OFFLINE, "--json")
    assert of_results([json.loads(line) for line in done.out.splitlines()])


@pytest.mark.slow
def test_by_its_name_from_one_process_to_the_next(sample: Path) -> None:
    def asked(question: str) -> Any:
        given = ["ask", question, "-w", str(sample), "--model", OFFLINE, "--conversation", "nissan", "--json"]
        done = subprocess.run([sys.executable, "-c", COMMAND, *given], capture_output=True, text=True, check=True)
        return json.loads(done.stdout)

    assert of_results([asked(question) for question in QUESTIONS])


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
    assert ends_right(answers, [answer.partition("*Understood as: ")[2] for answer in answers])
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
    assert ends_right([result["answer"] for result in results], [result["understood"] for result in results])
