"""Tests of the data layer, file by file."""
