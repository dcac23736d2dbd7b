from pathlib import Path


def report(folder: Path) -> str:
    return ""
