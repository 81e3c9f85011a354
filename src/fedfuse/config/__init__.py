"""What an experiment file may say, and how it is read."""

from fedfuse.config.changes import assign, merge
from fedfuse.config.files import read_yaml, validate
from fedfuse.config.schema import ExperimentConfig, Raw, json_schema

__all__ = ["ExperimentConfig", "Raw", "assign", "json_schema", "merge", "read_yaml", "validate"]
