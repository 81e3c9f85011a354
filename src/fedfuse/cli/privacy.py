"""``fedfuse privacy``: what an experiment's promise would cost, before it is run."""

from __future__ import annotations

from typing import Annotated

import typer

from fedfuse.cli.options import Assignments
from fedfuse.core.errors import ConfigError


def privacy(
    experiment: Annotated[str, typer.Argument(metavar="FILE_OR_PRESET", help="YAML file, preset or run folder")],
    assignments: Assignments = None,
    budgets: Annotated[str, typer.Option(metavar="EPSILONS", help="also how much noise these need, e.g. 1,2,8")] = "",
) -> None:
    """Show what a private experiment would give away, round by round, without running it."""
    from fedfuse.cli.console import console, print_facts, print_sheet
    from fedfuse.cli.imports import quick_imports
    from fedfuse.cli.words import words_of
    from fedfuse.experiment.finding import check_keys

    check_keys(experiment, assignments or ())
    try:
        wanted = [float(word) for word in words_of(budgets)]
    except ValueError:
        raise ConfigError(f"--budgets {budgets}: write numbers, separated by commas") from None
    if not all(0 < budget < float("inf") for budget in wanted):
        raise ConfigError(f"--budgets {budgets}: epsilons are above 0")
    with quick_imports():
        from fedfuse.experiment.config.noise import noise_keys
        from fedfuse.experiment.privacy_plan import plan_privacy

    with console.status("counting"):
        plan = plan_privacy(experiment, wanted, assignments or ())
    for sheet in plan.sheets():
        print_sheet(sheet)
    print_facts(noise=", ".join(f"{key} {value:g}" for key, value in noise_keys(plan.config)))
