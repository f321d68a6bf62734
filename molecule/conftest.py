"""What a playbook printed is shown with the test that failed after it."""

from __future__ import annotations

from collections.abc import Generator

import pytest
from tests import scenario


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.failed and scenario.PLAYED:
        report.sections.append(("the last playbook printed", scenario.PLAYED[-1].output[-12000:]))
    return report
