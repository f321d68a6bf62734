# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The report page: template, style and script of the role rdma_validate become one HTML file on the controller."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from ..module_utils._common.errors import FabricError, InputError, harmless
from ..module_utils._controller import report_folder, text_files

ROLE = Path(__file__).resolve().parents[2] / "roles" / "rdma_validate"
TEMPLATE = "report.html.j2"


def write(folder: str, page: str) -> None:
    """Render the page that the module fabric_report returned as JSON, and write it into the folder of the report."""
    place = Path(folder)
    # The module has just written the other files there, if it ran on this machine.
    if not (place / "report.json").is_file():
        raise InputError(
            f"report: {folder} has no report.json on the controller, where the page is rendered. Run fabric_report on"
            " the controller (delegate_to: localhost)"
        )
    try:
        text_files.write(str(place / report_folder.PAGE), render(json.loads(page)), report_folder.MODE)
    except OSError as exc:
        raise InputError(f"report: cannot write to {folder}: {exc.strerror}; choose another path") from exc


def finish(result: dict[str, Any]) -> dict[str, Any]:
    """Return the result of a module without the data of the page, which is rendered and written beside its files."""
    data = result.pop("page", None)
    if data is None:
        return result
    try:
        write(result["path"], data)
    except FabricError as exc:
        result.update(failed=True, msg=str(exc))
    return result


def digest(text: str) -> str:
    """Return how a policy names an inline style or script, so that no other one runs."""
    return "'sha256-%s'" % base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def render(page: Mapping[str, Any]) -> str:
    """Return the HTML of ``page``, the data of module_utils/_fabric/report/page.py.

    It is readable without style and script, by keyboard, in dark mode and printed. Every text is escaped: the
    environment is our own, since the one of Ansible does not escape, and knows nothing but the page.
    """
    style, script = (_asset(name) for name in ("report.css", "report.js"))
    # A browser that is given this fetches and sends nothing, and runs nothing but our script, whatever the page holds.
    policy = "default-src 'none'; style-src %s; script-src %s; form-action 'none'; base-uri 'none'"
    allowed = Markup(policy % (digest(style), digest(script)))  # noqa: S704 -- nothing but hashes
    values = {"page": page, "policy": allowed, "style": style, "script": script}
    return harmless(_environment().get_template(TEMPLATE).render(values).lstrip())


def _environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(ROLE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    # The tests of a big fleet: in the order in which they are packed, and without spaces.
    made.policies["json.dumps_kwargs"] = {"sort_keys": False, "separators": (",", ":")}
    return made


def _asset(name: str) -> Markup:
    """Return a file of the role that stands in the page as it is."""
    return Markup((ROLE / "files" / name).read_text(encoding="utf-8"))  # noqa: S704 -- a file of this collection
