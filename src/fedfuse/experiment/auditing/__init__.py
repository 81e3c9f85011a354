"""What can be found out from what left the parties of a run: membership inference (docs/audit.md)."""

from fedfuse.experiment.auditing.audit import Audit, Finding, audit

__all__ = ["Audit", "Finding", "audit"]
