"""What a cell's experiment consists of, in the papers' quantities, so that it can be held beside what they print."""

from __future__ import annotations

from typing import Any

from fedfuse.data import CATALOGUE
from fedfuse.data.toys import EXAMPLES
from fedfuse.experiment.config import ExperimentConfig
from fedfuse.models import Architecture
from fedfuse_papers.cells import Cell
from fedfuse_papers.entry import Entry

Quantities = dict[str, Any]


def quantities(cell: Cell, entry: Entry) -> Quantities:
    """Everything that a paper could print about a cell; what does not apply is left out."""
    config = cell.experiment(0).config
    found = {
        "seeds": entry.scales["paper"].seeds,
        "shows": _shown(cell),
        **_data(config),
        **_partition(config),
        **_training(config),
        "rounds": config.federation.rounds,
        "clients a round": _sampled(config),
        "networks": [describe(one) for one in config.models.values()],
        "norm statistics": config.federation.batch_norm if _has_statistics(config) else None,
        "target": config.evaluation.target_accuracy,
        "method": config.method.name,
        **_client_term(config),
        **_server(config),
    }
    return {name: value for name, value in found.items() if value is not None}


def describe(architecture: Architecture) -> str:
    """A network in a line, with every choice that papers make."""
    words = [f"{key} {getattr(architecture, key)}" for key in CHOICES if getattr(architecture, key, None) is not None]
    return ", ".join([architecture.arch, *words])


CHOICES = (
    *("hidden", "channels", "variant", "width", "extra_layers", "norm", "groups", "channels_per_group", "shortcut"),
    *("stem", "dropout", "initialisation", "pretrained", "layers", "pooling", "projection_head"),
)


def _shown(cell: Cell) -> str:
    what, at, model = cell.reading.what, cell.reading.at, cell.reading.model
    return what + (f" at {at:g}" if at else "") + (f" of {model}" if model else "")


def _data(config: ExperimentConfig) -> Quantities:
    """Sizes are counted from the official ones, as a reader of the paper would."""
    data, card = config.data, CATALOGUE[config.data.name]
    found = {"data": data.name, "classes": data.classes, "spread": data.spread}
    examples = min(card.sizes[0] if card.sizes else data.examples or EXAMPLES, data.train_limit or 10**9)
    if card.sizes is None:  # its test split comes out of the same examples
        examples -= _count(data.test, examples)
    validation = card.validation_size if data.validation == "official" else _count(data.validation, examples)
    own = 0 if data.validation == "official" else validation
    public = _count(data.public, examples)
    augment = [*data.augment, *([f"padding {data.crop_padding}"] if "crop" in data.augment else [])]
    text = f"{data.text.tokenizer}, {data.text.max_length} tokens" if data.text else None
    return {
        **found,
        "examples of the clients": examples - own - public,
        "examples for validation": validation,
        "public examples": public,
        "split": data.split if public or own else None,
        "augmentation": " ".join(augment) or None,
        "tokens": text,
    }


def _count(share: int | float, examples: int) -> int:
    return share if isinstance(share, int) else round(share * examples)


def _partition(config: ExperimentConfig) -> Quantities:
    keys = config.partition.model_dump(exclude_none=True)
    kind = keys.pop("kind")
    clients = keys.pop("clients")
    alpha = keys.pop("alpha", None)
    rest = ", ".join(f"{key} {value}" for key, value in sorted(keys.items()))
    return {"partition": f"{kind}, {rest}" if rest else kind, "clients": clients, "alpha": alpha}


def _sampled(config: ExperimentConfig) -> int:
    own = config.federation
    return own.clients_per_round or round(own.participation * config.partition.clients)


def _training(config: ExperimentConfig) -> Quantities:
    own = config.training
    steps_down = [f"{one.factor:g} after {one.after:g}" for one in own.decay]
    inside = [f"{one.factor:g} after {one.after:g}" for one in own.decay_inside]
    falling = [f"{own.step_decay:g} a step"] if own.step_decay != 1 else []
    falling += [own.schedule] if own.schedule != "constant" else []
    decay = own.optimizer.weight_decay
    spared = [what for what in ("norms", "biases") if not getattr(own.optimizer, f"decay_{what}")]
    return {
        "epochs": own.epochs if own.fewest_epochs is None else [own.fewest_epochs, own.epochs],
        "batch": own.batch_size,
        "optimiser": own.optimizer.kind,
        "rate": own.optimizer.learning_rate,
        "momentum": getattr(own.optimizer, "momentum", 0.0),
        "weight decay": decay,
        "weight decay spares": " and ".join(spared) or None if decay else None,
        "rate across rounds": ", ".join(steps_down) or "constant",
        "rate inside a round": ", ".join(inside + falling) or "constant",
        "gradients clipped at": own.clip_norm,
        "order of batches": None if own.shuffle else "the same in every epoch",
    }


def _has_statistics(config: ExperimentConfig) -> bool:
    return any(getattr(one, "norm", None) == "batch" or one.arch in NORMALISED for one in config.models.values())


NORMALISED = ("shufflenetv2", "mobilenetv2")


def _client_term(config: ExperimentConfig) -> Quantities:
    """The method's own term in a client's loss; plain training has none."""
    keys = {key: "default" if value is None else value for key, value in config.recipe.local.model_dump().items()}
    kind = keys.pop("kind")
    return {} if kind == "plain" else {"client's term": {"kind": kind, **keys}}


def _server(config: ExperimentConfig) -> Quantities:
    recipe = config.recipe
    merge, fuse = recipe.merge.model_dump(exclude_none=True), recipe.fuse.model_dump(exclude_none=True)
    screen = [one.kind for one in recipe.screen]
    found: Quantities = {"screen": screen or None}
    if merge["kind"] == "momentum":
        found["server momentum"] = f"{merge['beta']:g} {merge['form']} from round {merge['warm_up'] + 1}"
    if recipe.protocol.carries == "predictions":
        found["teachers weighed by"] = recipe.scores.model_dump()
    if fuse["kind"] != "none":
        found["source"] = _source(config) if recipe.needs_source else None
        found["fusion"] = _fusion(
            {**fuse, **({"weighting": recipe.scores.kind} if recipe.fuse.reads == "weights" else {})}
        )
    return found


def _source(config: ExperimentConfig) -> str:
    source = config.source
    if source.kind in ("uniform_noise", "gaussian_noise"):
        return f"{source.kind}, {source.size}" + (", new at every step" if source.fresh else "")
    words = ["public examples" if source.kind == "held_out" else source.data.name]
    if source.kind == "dataset":
        words += [f"{len(source.classes)} classes"] if source.classes else []
        words += [f"at {source.data.resize} pixels"] if source.data.resize else []
        words += [" ".join(source.data.augment)] if source.data.augment else []
        words += [f"constants of the {source.data.normalisation}"]
    words += [f"{source.fraction:g} of them"] if source.fraction != 1 else []
    words += [f"{source.limit} of them"] if source.limit else []
    return ", ".join(words)


def _teacher(one: Quantities) -> str:
    words = [f"{one['number']}"] if "number" in one else []
    words += [one["kind"]] + ([f"of {one['alpha']:g}"] if "alpha" in one else [])
    own = ["with own statistics"] if one.get("batch_norm") == "reestimate" else []
    return " ".join([*words, *([one["form"]] if "form" in one else []), *own])


def _fusion(fuse: Quantities) -> Quantities:
    distiller = fuse.pop("distiller", None)
    found = {key: value for key, value in fuse.items() if key not in ("kind", "teachers", "students")}
    if "teachers" in fuse:
        found["teachers"] = [_teacher(one) for one in fuse["teachers"]]
    if distiller is not None:
        optimizer, swa = distiller["optimizer"], distiller.get("swa")
        found["loss"] = distiller["loss"]
        found["budget"] = f"{distiller['epochs']} epochs" if "epochs" in distiller else f"{distiller['steps']} steps"
        found["batch"] = distiller["batch_size"]
        found["optimiser"] = optimizer["kind"]
        found["rate"] = optimizer["learning_rate"]
        found["momentum"] = optimizer.get("momentum", 0.0)
        found["schedule"] = "cycles" if swa else distiller["schedule"]
        found["clipped at"] = distiller.get("clip_norm")
        if swa:
            found["collects"] = f"every {swa['cycle']} after {swa['collect_after']}, down to {swa['lowest']:g}"
        elif distiller["keep"] == "best":
            found["keeps"] = f"best of every {distiller['evaluate_every']}, patience {distiller['patience']}"
    return {key: value for key, value in found.items() if value is not None}
