# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The variable by which a user consents to disturb workloads; every refusal names it."""

from __future__ import annotations

CONSENT = "rdma_disrupt_users"
