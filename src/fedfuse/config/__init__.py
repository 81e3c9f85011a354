"""What an experiment file may say, and how it is read."""

from fedfuse.config.files import assign, read_yaml, validate
from fedfuse.config.schema import ExperimentConfig, Raw, json_schema

__all__ = ["ExperimentConfig", "Raw", "assign", "json_schema", "read_yaml", "validate"]
