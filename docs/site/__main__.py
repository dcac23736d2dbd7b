"""Build the documentation as a site: ``python -m docs.site [FOLDER]``, by default ``build/site``.

The pages are those of ``docs/``, with ``README.md`` as the front page and the references filled in from the code.
Drawings become pictures, so that no page loads a script or a font from elsewhere.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

import yaml

from docs.site.sections import fill_for_the_site
from graph.errors import DependencyMissing, MaraError

ROOT = Path(__file__).parents[2]
FRONT = ROOT / "README.md"
PAGES: Mapping[Path, str] = {FRONT: "index.md", **{page: page.name for page in sorted((ROOT / "docs").glob("*.md"))}}
"""Each page, and its name on the site."""

FILES = "files"
"""The folder of the site for what pages link to and is no page."""

_DRAWING = re.compile(r"^```mermaid\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_CODE = re.compile(r"^ *```.*?^ *```|`[^`\n]+`", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"(?P<before>\]\()(?P<file>[^)\s#:]+)(?P<rest>(?:#[^)\s]*)?\))")


def build(site: Path) -> None:
    """Build the site into a folder; what was there goes.

    Raises:
        DependencyMissing: the generator is not installed.
        MaraError: a page links to nothing, or the generator warns.
    """
    if not find_spec("zensical") or not find_spec("mermaidx"):
        raise DependencyMissing("The generator of the site is not installed", "Run `make docs`")
    staged = site.with_name(f"{site.name}-pages")
    for folder in (site, staged):
        shutil.rmtree(folder, ignore_errors=True)
    for page, name in PAGES.items():
        staged.joinpath(name).parent.mkdir(parents=True, exist_ok=True)
        staged.joinpath(name).write_text(_for_the_site(page, staged), encoding="utf-8")
    settings = yaml.safe_load(Path(__file__).with_name("site.yml").read_text(encoding="utf-8"))
    settings |= {"docs_dir": staged.name, "site_dir": site.name}
    configuration = site.with_name(f"{site.name}.yml")
    configuration.write_text(yaml.safe_dump(settings, allow_unicode=True, sort_keys=False), encoding="utf-8")
    command = [sys.executable, "-m", "zensical", "build", "--clean", "--strict", "--config-file", str(configuration)]
    done = subprocess.run(command, check=False, capture_output=True, encoding="utf-8")
    if done.returncode:
        raise MaraError(f"The site cannot be built: {done.stdout}{done.stderr}")


def _for_the_site(page: Path, staged: Path) -> str:
    """Return a page as the generator is to read it, with the files that it links to put beside it."""
    text = fill_for_the_site(page.read_text(encoding="utf-8"))
    drawings = _DRAWING.findall(text)
    for number, drawing in enumerate(drawings, start=1):
        picture = staged / FILES / f"{page.stem}-{number}.svg"
        picture.parent.mkdir(parents=True, exist_ok=True)
        picture.write_text(_svg(drawing), encoding="utf-8")
        text = text.replace(f"```mermaid\n{drawing}```", f"![Drawing {number}]({FILES}/{picture.name})")
    kept: list[str] = []
    text = _CODE.sub(lambda found: f"\0{len(kept)}\0{kept.append(found[0]) or ''}", text)
    text = _LINK.sub(lambda found: found["before"] + _target(page, found["file"], staged) + found["rest"], text)
    return re.sub("\0(\\d+)\0", lambda found: kept[int(found[1])], text)


def _svg(drawing: str) -> str:
    import mermaidx

    return str(mermaidx.render(drawing).svg())


def _target(page: Path, link: str, staged: Path) -> str:
    """Return where a link of a page leads on the site; a file that is no page is copied there."""
    if link.startswith(f"{FILES}/"):
        return link
    target = (page.parent / link).resolve()
    if target in PAGES:
        return PAGES[target]
    if not target.is_file():
        raise MaraError(f"{page.name} links to {link}, which is no file")
    name = f"{FILES}/{target.name}" + (".txt" if target.suffix == ".md" else "")
    staged.joinpath(FILES).mkdir(exist_ok=True)
    shutil.copy(target, staged / name)
    return name


if __name__ == "__main__":
    try:
        build(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build" / "site")
    except MaraError as fault:
        sys.exit(f"{fault.message}. {fault.hint}")
