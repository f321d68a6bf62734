"""Lets plain pytest import the checkout under the collection's full name."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from hypothesis import HealthCheck, settings

# The gates run beside a lab that is being built: how long an example takes says nothing about the code.
# They also try the same examples each time, so that they say something about a change; `make soak` draws new ones.
_SLOW = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("gates", derandomize=True, **_SLOW)
settings.register_profile("soak", **_SLOW)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "gates"))

ROOT = Path(__file__).resolve().parents[2]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from tests.tools import importable  # noqa: E402, F401
