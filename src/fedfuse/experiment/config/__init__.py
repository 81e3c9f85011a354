"""What an experiment file may say, and how it is read."""

from fedfuse.core.yaml_text import load_yaml, read_yaml
from fedfuse.experiment.config.changes import assign, merge
from fedfuse.experiment.config.files import checked, validate
from fedfuse.experiment.config.schema import ExperimentConfig, Raw, json_schema

__all__ = ["ExperimentConfig", "Raw", "assign", "checked", "json_schema", "load_yaml", "merge", "read_yaml", "validate"]
