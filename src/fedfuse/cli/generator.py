"""``fedfuse generator``: train a generator for a ``generator`` source, and look at one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fedfuse.cli.console import console, print_facts
from fedfuse.cli.options import Quiet
from fedfuse.core.errors import ConfigError, FedfuseError, unknown

if TYPE_CHECKING:
    from fedfuse.data import Examples

LINES = 10
"""How many lines of progress a training prints where there is no terminal."""

app = typer.Typer(help="Train a small generator of distillation inputs, and look at one.", no_args_is_help=True)


@app.command()
def train(
    data: Annotated[
        str,
        typer.Argument(
            metavar="EXPERIMENT_OR_DATASET",
            help="YAML file, preset or run folder, whose public share (data.public) is used; or a dataset's name",
        ),
    ],
    out: Annotated[Path, typer.Option(help="the file to write, for example generator.safetensors")],
    assignments: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="change a key of the experiment")
    ] = None,
    epochs: Annotated[int, typer.Option(min=1, help="passes over the examples")] = 60,
    batch_size: Annotated[int, typer.Option(min=1, help="examples per step")] = 64,
    learning_rate: Annotated[float, typer.Option(min=1e-8, max=1.0, help="of Adam")] = 1e-3,
    latent: Annotated[int, typer.Option(min=1, help="how many random numbers an input is made from")] = 16,
    hidden: Annotated[int, typer.Option(min=1, help="width of the linear layers")] = 256,
    channels: Annotated[int, typer.Option(min=1, help="channels of the first convolution")] = 32,
    seed: Annotated[int, typer.Option(min=0, help="the generator's own seed, not the experiment's")] = 0,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="replace a file that is already there")] = False,
    quiet: Quiet = False,
) -> None:
    """Train a conditional generator on public data; after Ctrl-C the same command goes on."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    from fedfuse.parts.sources.generators import GeneratorTraining, VaeSettings, train_generator

    examples, classes, trained_on = _examples(data, assignments or ())
    network = VaeSettings(latent=latent, hidden=hidden, channels=channels)
    settings = GeneratorTraining(
        network=network, epochs=epochs, batch_size=batch_size, learning_rate=learning_rate, seed=seed
    )
    columns = (TextColumn("{task.description}"), BarColumn(bar_width=28), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=quiet or not console.is_terminal) as bars:
        task = bars.add_task("epochs", total=epochs)

        def progress(epoch: int, loss: float) -> None:
            bars.update(task, completed=epoch, description=f"epochs, loss {loss:.2f}")
            if not quiet and not console.is_terminal and epoch * LINES // epochs > (epoch - 1) * LINES // epochs:
                console.print(f"epoch {epoch}/{epochs} loss {loss:.2f}", highlight=False)

        try:
            train_generator(examples, classes, settings, out, trained_on, overwrite, progress)
        except KeyboardInterrupt:
            raise FedfuseError("interrupted; finished epochs are kept, go on with the same command") from None
    if not quiet:
        print_facts(data=f"{trained_on}, {len(examples)} examples", file=out)


@app.command()
def show(
    file: Annotated[Path, typer.Argument(help="a file that fedfuse generator train wrote")],
    picture: Annotated[Path | None, typer.Option(help="also draw samples of every class into this PNG")] = None,
    samples: Annotated[int, typer.Option(min=1, max=100, help="samples per class in the picture")] = 10,
    seed: Annotated[int, typer.Option(min=0, help="of the samples")] = 0,
) -> None:
    """Say what a generator makes and what it was trained on."""
    from fedfuse.models import parameter_count
    from fedfuse.parts.sources.generators import load_generator

    generator = load_generator(file)
    card = generator.card
    if picture is not None:
        from fedfuse.report.samples import draw_samples

        draw_samples(picture, generator, samples, seed)
    print_facts(
        makes=f"{card.input_kind} of shape {'x'.join(map(str, card.input_shape))}, {card.classes} classes",
        network=f"{parameter_count(generator.decoder):,} parameters, {card.network.latent} random numbers",
        data=f"{card.trained_on}, {card.examples} examples",
        training=f"{card.epochs} epochs, seed {card.seed}",
    )
    if picture is not None:
        print_facts(picture=picture)


def _examples(name: str, assignments: list[str] | tuple[()]) -> tuple[Examples, int, str]:
    """The labelled public examples behind a name, the number of their classes, and what they are."""
    from fedfuse.core.randomness import Key
    from fedfuse.data import CATALOGUE, DataSettings, load, split
    from fedfuse.experiment import presets
    from fedfuse.experiment.run import Experiment

    is_experiment = Path(name).exists() or Path(name).suffix in (".yaml", ".yml") or name in presets.names()
    if not is_experiment:
        if name not in CATALOGUE:
            raise ConfigError(unknown("experiment or dataset", name, [*presets.names(), *CATALOGUE]))
        if assignments:
            raise ConfigError("--set changes keys of an experiment, not of a dataset")
        dataset = load(DataSettings(name=name), Key(0).child("load"))
        return dataset.train, dataset.classes, f"{name} (training examples)"
    config = Experiment.load(name, assignments).config
    key = Key(config.seed)
    dataset = load(config.data, key.child("load"))
    public = split(dataset, config.data, key.child("split")).public
    if not len(public):
        raise ConfigError(
            f"{name} keeps no public examples to train on; set data.public above 0, or name a public dataset"
        )
    return public, dataset.classes, f"{config.name}, public share of {dataset.name} (seed {config.seed})"
