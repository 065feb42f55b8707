"""Run and qrels files, or mappings -> columns of ids, scores and grades."""

from falsify_cli.read.facts import FileFacts
from falsify_cli.read.lists_of_ids import read_corpus, read_groups
from falsify_cli.read.qrels import Qrels, qrels_of_mapping, read_qrels
from falsify_cli.read.run import read_run, run_of_mapping
from falsify_cli.read.run_block import Keep
from falsify_cli.read.run_parts import Run
from falsify_cli.read.source import STDIN

__all__ = [
    "STDIN",
    "FileFacts",
    "Keep",
    "Qrels",
    "Run",
    "qrels_of_mapping",
    "read_corpus",
    "read_groups",
    "read_qrels",
    "read_run",
    "run_of_mapping",
]
