"""CFD: compressed federated distillation. Soft labels of few bits up, the student's own down.

Sattler, Marban, Rischke and Samek, CFD: Communication-Efficient Federated Distillation via Soft-Label Quantization and
Delta Coding, 2021.

    client:  copy <- distil the server's soft labels;   model <- train(copy, own examples);   send Q_up(p(model, x_j))
    server:  student <- distil the mean of Q_up(p_k);   send Q_down(p(student, x_j))

Q_b is written out in parts/bits.py; with one bit it is the most probable class. Delta coding of successive
rounds is not part of it here.
"""

from fedfuse.federation import Recipe
from fedfuse.methods.base import Method
from fedfuse.parts.fuse import Distiller, PredictionDistillation
from fedfuse.parts.local import Plain
from fedfuse.parts.protocol import ClientDistillation, Predictions
from fedfuse.parts.upload import SoftLabels

CFD = Method(
    name="cfd",
    title="CFD",
    citation="Sattler et al., 2021",
    brief="distil most probable classes, in few bits",
    summary="distil the clients' most probable classes on public inputs; the student's answers start the clients",
    exchanges="initial weights down once; one class per public input up, eight bits per probability down",
    server_keeps="student, public inputs",
    client_keeps="a copy of the student that it distilled itself",
    recipe=Recipe(
        protocol=Predictions(bits_down=8, distillation=ClientDistillation(of="student", epochs=5, keep="distilled")),
        upload=(SoftLabels(bits=1),),
        local=Plain(),
        fuse=PredictionDistillation(
            start="previous", distiller=Distiller(steps=2000, batch_size=128, schedule="constant", keep="last")
        ),
    ),
)
