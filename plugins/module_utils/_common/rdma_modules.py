# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kernel modules that use the RDMA core: while one is loaded, the drivers below it cannot be replaced."""

from __future__ import annotations

# Storage over RDMA (Network Operator documentation, UNLOAD_STORAGE_MODULES).
STORAGE = ("ib_iser", "ib_isert", "ib_srp", "ib_srpt", "nvme_rdma", "nvmet_rdma", "rpcrdma", "xprtrdma")
# Drivers of RDMA devices of other vendors, and of software (UNLOAD_THIRD_PARTY_RDMA_MODULES).
OTHERS = (
    "bnxt_re", "efa", "erdma", "hfi1", "hns_roce", "ionic_rdma", "irdma", "iw_cxgb4", "mana_ib", "ocrdma", "qedr",
    "rdma_rxe", "siw", "vmw_pvrdma",
)  # fmt: skip
