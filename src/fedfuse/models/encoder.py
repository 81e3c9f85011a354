"""BERT-like encoders, fresh or pre-trained, through the optional package ``transformers``.

    the last layer's first token, [CLS], or the mean of all -> Linear d-d -> ReLU -> dropout -> classifier

``distilbert`` is FedDF's and FedGKD's DistilBERT. ``encoder`` is any encoder whose weights lie in a local folder or on
the Hugging Face hub (``pretrained``), or that a config describes (``config: {model_type: bert, ...}``).
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, JsonValue, model_validator
from torch import Tensor, nn

from fedfuse.core.errors import ConfigError, MissingExtraError
from fedfuse.core.imports import first_line
from fedfuse.core.text import PADDING, TextShape
from fedfuse.models.architecture import Architecture, Count, require_text
from fedfuse.models.classifier import Classifier
from fedfuse.models.text import masked_mean

Pooling = Literal["first", "mean"]


class Encoder(Architecture):
    """The encoder's first ``layers`` layers, and a head for classification."""

    arch: Literal["distilbert", "encoder"]
    pretrained: str | None = Field(
        None, description="folder or hub name of pre-trained weights; data.text.tokenizer must be the same"
    )
    config: dict[str, JsonValue] = Field(
        default_factory=dict, description="of an encoder without pre-trained weights: keys of its transformers config"
    )
    layers: Annotated[Count | None, Field(description="keep this many layers, the first ones; all if not given")] = None
    pooling: Pooling = Field(
        "first", description="the first token's state, as for DistilBERT, or the mean of all, as for sentence encoders"
    )
    dropout: float = Field(0.2, ge=0, lt=1, description="before the classifier")

    @model_validator(mode="after")
    def _one_origin(self) -> Encoder:
        if self.pretrained is not None and self.config:
            raise ValueError("pretrained weights come with their own config; keep one of the two")
        if self.arch == "encoder" and self.pretrained is None and "model_type" not in self.config:
            raise ValueError("encoder needs pretrained, or a config with a model_type such as bert")
        return self

    @property
    def taught_on(self) -> str | None:
        return self.pretrained

    def build(self, input_shape: tuple[int, ...], classes: int) -> Classifier:
        text = require_text(self.arch, input_shape)
        try:
            import transformers
        except ImportError as error:
            raise MissingExtraError(f"model {self.arch}", "text") from error
        transformers.logging.set_verbosity_error()  # it would report the layers that are left out on purpose
        transformers.logging.disable_progress_bar()
        try:
            network = self._network(transformers, text)
        except Exception as error:  # the package raises its own, its HTTP client's and the file system's errors
            raise ConfigError(f"{self.arch} cannot be built: {first_line(error)}") from error
        self._check(network.config, text)
        if getattr(network, "pooler", None) is not None:
            network.pooler = None  # this head stands in its place
        return EncoderClassifier(network, network.config.hidden_size, self.pooling, self.dropout, classes)

    def _network(self, transformers: Any, text: TextShape) -> Any:
        if self.pretrained is not None:
            place = Path(self.pretrained).expanduser()
            name = place if place.is_dir() else self.pretrained
            config = self._shortened(transformers.AutoConfig.from_pretrained(name))
            return transformers.AutoModel.from_pretrained(name, config=config, use_safetensors=True).float()
        keys: dict[str, Any] = {"model_type": "distilbert", "vocab_size": text.vocabulary, **self.config}
        config = self._shortened(transformers.AutoConfig.for_model(keys.pop("model_type"), **keys))
        return transformers.AutoModel.from_config(config)

    def _shortened(self, config: Any) -> Any:
        config.num_hidden_layers = min(self.layers or config.num_hidden_layers, config.num_hidden_layers)
        return config

    def _check(self, config: Any, text: TextShape) -> None:
        if text.vocabulary > config.vocab_size:
            raise ConfigError(
                f"{self.arch} knows {config.vocab_size} tokens, but data.text.tokenizer has {text.vocabulary}; "
                f"set it to {self.pretrained or 'one with fewer'}"
            )
        if text.length > config.max_position_embeddings:
            raise ConfigError(
                f"{self.arch} reads at most {config.max_position_embeddings} tokens; lower data.text.max_length"
            )


class EncoderClassifier(Classifier):
    """Any network that takes ``input_ids`` and ``attention_mask`` and returns a ``last_hidden_state``."""

    def __init__(self, encoder: nn.Module, width: int, pooling: Pooling, dropout: float, classes: int) -> None:
        super().__init__()
        self.encoder = encoder
        self.pooling = pooling
        self.head = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Dropout(dropout))
        self.feature_size = width
        self.classifier = nn.Linear(width, classes)

    def features(self, x: Tensor) -> Tensor:
        features: Tensor = self.head(self.pooled(x))
        return features

    def pooled(self, x: Tensor) -> Tensor:
        """The encoder's own representation."""
        mask = x != PADDING
        states: Tensor = self.encoder(input_ids=x, attention_mask=mask.long()).last_hidden_state
        return states[:, 0] if self.pooling == "first" else masked_mean(states, mask)
