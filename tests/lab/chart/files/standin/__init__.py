# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A stand-in of the NVIDIA Network Operator, for the lab and the tests only.

It is not the vendor's operator and shares no code with it: the vendor's image cannot be had in the lab.
It behaves, seen through the API server, as recordings of the real operator 26.7 behave, also in their
traps, as far as the lab needs it; the README of the chart says what it plays and what it leaves out.

Python's standard library is enough: it runs in a pod, from a ConfigMap.
"""
