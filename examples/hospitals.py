"""Three hospitals with a network each, trained apart: files to try ``fedfuse fuse`` on (docs/fuse.md).

    python examples/hospitals.py
    fedfuse fuse hospitals/a.safetensors hospitals/b.safetensors hospitals/phone.onnx \\
        --student cnn3 --data hospitals/images.npz --examples hospitals/labelled.npz --out fused

Handwritten digits: 1,000 belong to the hospitals, who see them very unevenly, 500 are images that nobody has labelled,
and the rest is labelled, to measure by.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

import fedfuse
from fedfuse.models.export import export

OUT = Path("hospitals")
WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
NETWORKS = {"a": {"arch": "mlp", "hidden": [64]}, "b": {"arch": "cnn3"}, "phone": {"arch": "cnn1"}}


def main() -> None:
    digits = load_digits()
    images, labels = (digits.images * 15.9375).astype(np.uint8), digits.target
    order = np.random.default_rng(0).permutation(len(labels))
    own, public, labelled = np.split(order, [1000, 1500])
    OUT.mkdir(exist_ok=True)
    np.savez(OUT / "own.npz", x=images[own], y=labels[own])
    np.savez(OUT / "images.npz", images[public])
    np.savez(OUT / "labelled.npz", x=images[labelled], y=labels[labelled])
    result = fedfuse.run(
        {
            "name": "hospitals",
            "data": {"name": "npz", "path": str(OUT / "own.npz"), "test": 0.05},
            "partition": {"kind": "dirichlet", "clients": 3, "alpha": 0.2, "min_examples": 50},
            "models": NETWORKS,
            "training": {"epochs": 40, "batch_size": 32},
            "federation": {"rounds": 1},
            "method": "local-only",
        },
        out=OUT / "run",
        overwrite=True,
    )
    for client, name in enumerate(NETWORKS):
        model = fedfuse.load_model(result.folder.path / "final" / "clients" / f"{client}.safetensors")
        if name == "phone":
            export(model, OUT / "phone.onnx", overwrite=True)
        else:
            file = OUT / f"{name}.safetensors"
            file.write_bytes((result.folder.path / "final" / "clients" / f"{client}.safetensors").read_bytes())
    print(f"wrote {', '.join(sorted(path.name for path in OUT.iterdir() if path.is_file()))} to {OUT}/")


if __name__ == "__main__":
    main()
