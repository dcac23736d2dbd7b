"""Conversations: recall and answers with the thread, beside the last turn alone and the previous question in front.

    python -m benchmarks.conversations [--part development] [--model offline] [--each]
    python -m benchmarks.conversations --mtrag DATA_FOLDER -w WORKSPACE [--rewriter local]

Without a folder, the conversations of ``sample.jsonl`` are asked over the sample corpus, with the system's own answers
as the thread. The offline agents quote evidence: an answer counts as right where the words of the gold answer stand in
it. With a folder, the later questions of MTRAG are asked in a workspace of its corpus, for their passages alone; turns
are the messages before them. Intervals are 95 % bootstrap intervals of paired differences.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from agents.rewriter import ChatRewriter
from benchmarks.conversations import mtrag, sample
from benchmarks.conversations.data import Part, read_conversations
from workflows.context import Context
from workflows.runtime.resources import OFFLINE, chat_model_of


def main() -> None:
    """Measure and print Markdown tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", action="append", type=Part, choices=list(Part), help="of the sample; else both")
    parser.add_argument("--each", action="store_true", help="also print every question that went wrong")
    parser.add_argument("--model", default=OFFLINE, help="chat model; 'local' is the packaged one")
    parser.add_argument("--rewriter", help="with --mtrag: chat model that completes questions, 'local' for one")
    parser.add_argument("--mtrag", type=Path, help="folder with questions.jsonl; needs --workspace")
    parser.add_argument("--workspace", "-w", help="workspace of the folder's corpus")
    options = parser.parse_args()
    if bool(options.mtrag) != bool(options.workspace):
        parser.error("--mtrag and --workspace go together")
    model = chat_model_of(Context(model=options.rewriter), 0.0) if options.rewriter else None
    rewriter = ChatRewriter(model) if model else None
    if options.mtrag:
        tables = mtrag.report(options.mtrag, options.workspace, options.model, each=options.each, rewriter=rewriter)
    else:
        tables = sample.report(read_conversations(options.part or list(Part)), options.model, each=options.each)
    for table in tables:
        print(f"{table}\n", flush=True)


if __name__ == "__main__":
    main()
