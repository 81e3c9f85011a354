"""On which examples an experiment judges its rounds, and whether it can."""

from __future__ import annotations

from fedfuse.core.errors import ConfigError
from fedfuse.experiment.config import ExperimentConfig
from fedfuse.federation.judging import Judge, On, Watch


def measures_validation(config: ExperimentConfig, examples: int) -> bool:
    """Whether rounds are measured on the validation examples, of which there are so many."""
    on = judged_on(config, examples)
    if config.evaluation.validation and not examples:
        raise ConfigError("evaluation.validation measures on examples that there are not; set data.validation")
    return bool(examples) and (config.evaluation.validation or (config.evaluation.judges and on == "validation"))


def judged_on(config: ExperimentConfig, examples: int) -> On:
    """The examples that rounds are judged on, where there are so many validation examples."""
    wanted, can = config.evaluation.best_on, config.recipe.has_server_model or config.answers_as_ensemble
    if wanted == "auto":
        return "validation" if examples and can else "test"
    if wanted == "validation" and not can:
        raise ConfigError(
            f"evaluation.best_on is validation, but method {config.method.called} leaves all models with its clients, "
            "which answer about test inputs only; set it to test"
        )
    if wanted == "validation" and not examples:
        raise ConfigError("evaluation.best_on is validation, but there are no such examples; set data.validation")
    return wanted


def watch_of(config: ExperimentConfig, on: On) -> Watch:
    """Who looks at the rounds of a run."""
    evaluation = config.evaluation
    judge = Judge.of(evaluation, on, config.answers_as_ensemble)
    return Watch(judge, evaluation.patience, evaluation.least_gain)
