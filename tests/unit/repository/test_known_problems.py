"""The problems of users in docs/lint.md: rules and tests exist, no rule with a thread is left out. Cost: 0.1 s."""

from __future__ import annotations

import re

import pytest
from tests.tools.environment import REPO
from tests.tools.known_problems import PROBLEMS, Problem

from ansible_collections.gpufabric.rdma.plugins.module_utils._fabric.lint import registry


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: problem.text)
def test_what_finds_a_problem_exists(problem: Problem) -> None:
    assert {*problem.rules} <= {*registry.names()}
    assert problem.rules or problem.place
    # What is found elsewhere has a test; what is not found says so.
    assert bool(problem.test) == (problem.place not in ("", "not found"))
    if problem.test:
        path, _colons, name = problem.test.partition("::")
        assert re.search(rf"^def {name}\(", (REPO / path).read_text(), re.MULTILINE), problem.test


def test_rules_with_a_thread_are_in_the_table() -> None:
    named = {rule for problem in PROBLEMS for rule in problem.rules}
    assert {rule.name for rule in registry.RULES if "#" in rule.source} <= named
