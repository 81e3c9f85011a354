"""Published methods as recipes, one file each."""

from fedfuse.methods.base import Method
from fedfuse.methods.fedavg import FEDAVG
from fedfuse.methods.fedavgm import FEDAVGM
from fedfuse.methods.fedbe import FEDBE
from fedfuse.methods.feddf import FEDDF
from fedfuse.methods.feddistill_plus import FEDDISTILL_PLUS
from fedfuse.methods.fedgkd import FEDGKD
from fedfuse.methods.fedgkd_plus import FEDGKD_PLUS
from fedfuse.methods.fedgkd_vote import FEDGKD_VOTE
from fedfuse.methods.fedprox import FEDPROX
from fedfuse.methods.moon import MOON
from fedfuse.methods.one_ensemble import ONE_ENSEMBLE
from fedfuse.methods.scaffold import SCAFFOLD
from fedfuse.methods.v_distillation import V_DISTILLATION

METHODS: dict[str, Method] = {
    m.name: m
    for m in (
        FEDAVG,
        FEDPROX,
        FEDAVGM,
        MOON,
        FEDDISTILL_PLUS,
        FEDGKD,
        FEDGKD_VOTE,
        FEDGKD_PLUS,
        SCAFFOLD,
        FEDDF,
        FEDBE,
        V_DISTILLATION,
        ONE_ENSEMBLE,
    )
}

__all__ = ["METHODS", "Method"]
