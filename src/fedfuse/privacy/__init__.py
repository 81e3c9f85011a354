"""What a run gives away: promises of differential privacy, and the accountants that put a number on them.

The mechanisms themselves are parts: clip, noise and statistics of ``upload``, ``training.privacy``, the protocol votes.
"""

from fedfuse.privacy.settings import PrivacySettings

__all__ = ["PrivacySettings"]
