"""Build the site of the documentation: python -m tests.tools.docs_site [FOLDER].

The pages of docs/, the kit for AWX and the reference of all plugins as HTML, without network. A link that leads
nowhere, a page in no table of contents and a plugin whose documentation cannot be shown are errors.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

import yaml
from tests.tools import environment

REPO = environment.REPO
DOCS = REPO / "docs"
SITE = DOCS / "site"
_CONTENTS = re.compile(r"^\.\. contents::\n(?: +:.*\n)*", re.M)
_LINK = re.compile(r"(\]\()([^)#\s:]+)(#[^)\s]*)?(\))")


def build(target: Path) -> None:
    """Write the site to a folder; CalledProcessError when Sphinx or antsibull-docs finds a fault."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "source"
        collect(source)
        plugins(source / "plugins")
        options = ["-q", "-W", "--keep-going", "-b", "html"]
        run("sphinx-build", *options, str(source), str(target))


def collect(source: Path) -> None:
    """Copy the pages, with links to files that the site does not have as links to the repository."""
    shutil.copytree(DOCS, source, ignore=shutil.ignore_patterns("README.md", "site"))
    (source / "gallery/README.md").write_text((DOCS / "gallery/README.md").read_text())
    (source / "awx.md").write_text((REPO / "awx/README.md").read_text())
    shutil.copy(SITE / "conf.py", source)
    shutil.copy(SITE / "index.md", source)
    shutil.copy(SITE / "decisions.md", source / "decisions/index.md")
    for page in source.rglob("*.md"):
        inside = page.relative_to(source)
        origin = REPO / "awx/README.md" if inside == Path("awx.md") else DOCS / inside
        place = partial(link, origin=origin, source=source, inside=inside)
        page.write_text(_LINK.sub(place, page.read_text()))


def link(found: re.Match[str], *, origin: Path, source: Path, inside: Path) -> str:
    """Return a link of a page as the site needs it."""
    goal = (origin.parent / found[2]).resolve()
    if goal.is_relative_to(DOCS) and (source / goal.relative_to(DOCS)).is_file():
        # Relative to where the page is in the site, which for the kit of AWX is another place.
        up = "../" * (len(inside.parts) - 1)
        return f"{found[1]}{up}{goal.relative_to(DOCS)}{found[3] or ''}{found[4]}"
    if not goal.exists():
        return found[0]
    base = yaml.safe_load((REPO / "galaxy.yml").read_text())["repository"]
    kind = "tree" if goal.is_dir() else "blob"
    return f"{found[1]}{base}/{kind}/main/{goal.relative_to(REPO)}{found[3] or ''}{found[4]}"


def plugins(target: Path) -> None:
    """Write the reference of modules and plugins."""
    target.mkdir(mode=0o755)
    options = ["--use-current", "--squash-hierarchy", "--no-breadcrumbs", "--fail-on-error", "--cleanup=everything"]
    run("antsibull-docs", "collection", *options, "--dest-dir", str(target), "gpufabric.rdma")
    for page in target.glob("*.rst"):
        # The theme has a table of contents beside each page.
        page.write_text(_CONTENTS.sub("", page.read_text()))


def run(program: str, *args: str) -> None:
    subprocess.run([program, *args], check=True, env=environment.environ())


if __name__ == "__main__":
    build(Path(sys.argv[1]) if len(sys.argv) > 1 else environment.CACHE / "docs-site")
