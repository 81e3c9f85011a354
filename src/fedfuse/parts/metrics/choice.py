"""The slot of a metric: by its kind or its address, and where it has nothing else to say, by that alone.

evaluation: {metrics: [macro_f1, {kind: calibration_error, bins: 10}, "my_metrics:TopK"]}
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from fedfuse.core.choice import OneOf
from fedfuse.parts.metrics.accuracy import Accuracy
from fedfuse.parts.metrics.auroc import Auroc
from fedfuse.parts.metrics.balanced_accuracy import BalancedAccuracy
from fedfuse.parts.metrics.base import Metric
from fedfuse.parts.metrics.calibration_error import CalibrationError
from fedfuse.parts.metrics.loss import Loss
from fedfuse.parts.metrics.macro_f1 import MacroF1
from fedfuse.parts.metrics.per_class_accuracy import PerClassAccuracy


class _OrItsKindAlone:
    """Takes a string for a part without keys of its own."""

    def __get_pydantic_core_schema__(self, base: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        def spelled_out(value: Any) -> Any:
            return {"kind": value} if isinstance(value, str) else value

        return core_schema.no_info_before_validator_function(spelled_out, handler(base))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {"anyOf": [{"type": "string"}, handler(schema)]}


AnyMetric = Annotated[
    Metric,
    OneOf(Accuracy, Loss, MacroF1, BalancedAccuracy, Auroc, CalibrationError, PerClassAccuracy),
    _OrItsKindAlone(),
]
