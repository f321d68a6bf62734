"""Which kernel boots next, by GRUB's menu, by boot loader entries, by what is installed."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.gpufabric.rdma.plugins.module_utils._host.facts.next_kernel import next_kernel, version_key

OLD, NEW = "6.12.9+deb13-amd64", "6.12.10+deb13-amd64"
# Made by hand in the form of Debian's grub-mkconfig 2.12.
GRUB = f"""
if [ "${{next_entry}}" ] ; then
   set default="${{next_entry}}"
else
   set default="DEFAULT"
fi
function recordfail {{
  set recordfail=1
}}
menuentry 'Debian GNU/Linux' --class debian $menuentry_id_option 'simple-1' {{
\tload_video
\tif [ x$grub_platform = xxen ]; then insmod xzio; fi
\tlinux\t/boot/vmlinuz-{NEW} root=/dev/vda1 ro
}}
submenu 'Advanced options for Debian GNU/Linux' $menuentry_id_option 'advanced-1' {{
\tmenuentry 'Debian GNU/Linux, with Linux {NEW}' $menuentry_id_option 'new-1' {{
\t\tlinux\t/boot/vmlinuz-{NEW} root=/dev/vda1 ro
\t}}
\tmenuentry 'Debian GNU/Linux, with Linux {OLD}' $menuentry_id_option 'old-1' {{
\t\tlinux\t/boot/vmlinuz-{OLD} root=/dev/vda1 ro
\t}}
}}
"""
# Made by hand in the form of the Boot Loader Specification as RHEL 9 writes it.
ENTRIES = {
    "aa-5.14.0-570.el9.x86_64.conf": "title RHEL\nversion 5.14.0-570.el9.x86_64\nlinux /vmlinuz-5.14.0-570",
    "aa-5.14.0-611.el9.x86_64.conf": "title RHEL\nlinux /vmlinuz-5.14.0-611.el9.x86_64\n",
    "aa-0-rescue.conf": "title rescue\nversion 9.9.9-rescue\n",
}
BLS = 'set default="${saved_entry}"\nblscfg\n'


def boot(**parts: Any) -> dict[str, Any]:
    return {"grub_cfg": "", "grubenv": "", "entries": {}, "kernels": [], **parts}


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ({}, None),
        ({"kernels": [OLD, NEW, "5.10.0-1"]}, NEW),
        ({"grub_cfg": GRUB.replace("DEFAULT", "0"), "kernels": ["9.0"]}, NEW),
        ({"grub_cfg": GRUB.replace("DEFAULT", "1>1")}, OLD),
        ({"grub_cfg": GRUB.replace("DEFAULT", "1")}, NEW),
        ({"grub_cfg": GRUB.replace("DEFAULT", "advanced-1>old-1")}, OLD),
        ({"grub_cfg": GRUB.replace("DEFAULT", f"advanced-1>Debian GNU/Linux, with Linux {OLD}")}, OLD),
        ({"grub_cfg": GRUB.replace("DEFAULT", "gone")}, NEW),
        ({"grub_cfg": GRUB.replace("DEFAULT", "²")}, NEW),
        ({"grub_cfg": GRUB.replace("DEFAULT", "0"), "grubenv": "next_entry=advanced-1>old-1\n"}, OLD),
        ({"grub_cfg": GRUB.replace("DEFAULT", "${saved_entry}"), "grubenv": "saved_entry=1>1\n"}, OLD),
        ({"grub_cfg": BLS, "entries": ENTRIES}, "5.14.0-611.el9.x86_64"),
        ({"grub_cfg": BLS, "entries": ENTRIES, "grubenv": "saved_entry=aa-5.14.0-570.el9.x86_64\n"},
         "5.14.0-570.el9.x86_64"),
        ({"grub_cfg": "menuentry 'broken {\n linux nothing\n}\n", "kernels": [OLD]}, OLD),
    ],
)  # fmt: skip
def test_what_boots_next(parts: dict[str, Any], expected: str | None) -> None:
    assert next_kernel(boot(**parts)) == expected


@given(text=st.text(), environment=st.text(), entry=st.text())
def test_any_text_is_read(text: str, environment: str, entry: str) -> None:
    lines = f"menuentry '{text}' {{\n{text}\n}}\nset default=\"{environment}\"\n"
    made = boot(grub_cfg=lines, grubenv=environment, entries={"a.conf": entry}, kernels=[])
    assert next_kernel(made) is None or isinstance(next_kernel(made), str)


def test_releases_are_ordered_by_number() -> None:
    assert sorted(["6.12.10", "6.2", "6.12.9"], key=version_key) == ["6.2", "6.12.9", "6.12.10"]
