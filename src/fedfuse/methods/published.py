"""The methods of this package, in the order in which they are listed."""

from fedfuse.methods.base import Method
from fedfuse.methods.centralised import CENTRALISED
from fedfuse.methods.cfd import CFD
from fedfuse.methods.cronus import CRONUS
from fedfuse.methods.ds_fl import DS_FL
from fedfuse.methods.fd import FD
from fedfuse.methods.fedaux import FEDAUX
from fedfuse.methods.fedavg import FEDAVG
from fedfuse.methods.fedavgm import FEDAVGM, FEDAVGM_AS_CODED
from fedfuse.methods.fedbe import FEDBE, FEDBE_AS_CODED
from fedfuse.methods.feddf import FEDDF, FEDDF_AS_CODED
from fedfuse.methods.feddf_one_bit import FEDDF_ONE_BIT
from fedfuse.methods.feddistill_plus import FEDDISTILL_PLUS, FEDDISTILL_PLUS_AS_CODED
from fedfuse.methods.feded import FEDED_W0, FEDED_W1, FEDED_W2
from fedfuse.methods.fedgen import FEDGEN, FEDGEN_AS_PRINTED
from fedfuse.methods.fedgkd import FEDGKD
from fedfuse.methods.fedgkd_plus import FEDGKD_PLUS
from fedfuse.methods.fedgkd_vote import FEDGKD_VOTE
from fedfuse.methods.fedma import FEDMA
from fedfuse.methods.fedmd import FEDMD
from fedfuse.methods.fedprox import FEDPROX
from fedfuse.methods.local_only import LOCAL_ONLY
from fedfuse.methods.moon import MOON
from fedfuse.methods.one_ensemble import ONE_ENSEMBLE
from fedfuse.methods.scaffold import SCAFFOLD
from fedfuse.methods.true_labels import TRUE_LABELS
from fedfuse.methods.v_distillation import V_DISTILLATION

METHODS: dict[str, Method] = {
    m.name: m
    for m in (
        FEDAVG,
        FEDPROX,
        FEDAVGM,
        FEDAVGM_AS_CODED,
        MOON,
        FEDDISTILL_PLUS,
        FEDDISTILL_PLUS_AS_CODED,
        FEDGEN,
        FEDGEN_AS_PRINTED,
        FEDGKD,
        FEDGKD_VOTE,
        FEDGKD_PLUS,
        SCAFFOLD,
        FEDMA,
        FEDDF,
        FEDDF_AS_CODED,
        FEDDF_ONE_BIT,
        FEDBE,
        FEDBE_AS_CODED,
        V_DISTILLATION,
        ONE_ENSEMBLE,
        FEDED_W0,
        FEDED_W1,
        FEDED_W2,
        FEDAUX,
        FD,
        FEDMD,
        DS_FL,
        CRONUS,
        CFD,
        LOCAL_ONLY,
        CENTRALISED,
        TRUE_LABELS,
    )
}
