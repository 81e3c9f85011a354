"""Secure sums: the server sees what clients come to together, and none of them alone (docs/secure-sums.md)."""
