"""The look-up beyond the user's folders, against a hub on this machine."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import numpy as np
import pytest

from fedfuse.core.errors import DataError
from fedfuse.core.randomness import Key
from fedfuse.data import CATALOGUE, DataSettings, load

from .samples import WriteParquet, encode, random_images
from .test_public_formats import write_mnist

IMAGES = random_images(10, side=28, channels=1)
NAME = "zalando-datasets/fashion_mnist"


class FakeHub:
    """Files by path; what is ``announced`` or ``sent`` may differ from them."""

    def __init__(self, files: dict[str, bytes]) -> None:
        self.files = files
        self.announced = {path: hashlib.sha256(content).hexdigest() for path, content in files.items()}
        self.sent: dict[str, bytes] = {}
        self.requests: list[str] = []

    def answer(self, path: str) -> bytes | None:
        self.requests.append(path)
        if path.startswith(f"/api/datasets/{NAME}/tree/main"):
            return json.dumps(
                [
                    {"type": "file", "path": path, "size": len(content), "lfs": {"oid": self.announced[path]}}
                    for path, content in self.files.items()
                ]
            ).encode()
        file = path.removeprefix(f"/datasets/{NAME}/resolve/main/")
        return self.sent.get(file, self.files.get(file))


@pytest.fixture
def hub(write_parquet: WriteParquet, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHub]:
    monkeypatch.delenv("FEDFUSE_DATA", raising=False)
    monkeypatch.delenv("HF_HUB_OFFLINE")
    train = write_parquet(encode(IMAGES), list(range(10)), None).read_bytes()
    test = write_parquet(encode(IMAGES[:1]), [0], None).read_bytes()
    fake = FakeHub(
        {
            "README.md": b"not wanted",
            "fashion_mnist/train-00000-of-00001.parquet": train,
            "fashion_mnist/test-00000-of-00001.parquet": test,
        }
    )

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            content = fake.answer(self.path)
            self.send_response(404 if content is None else 200)
            self.end_headers()
            self.wfile.write(content or b"")

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{server.server_port}")
    yield fake
    server.shutdown()
    server.server_close()


@pytest.fixture(autouse=True)
def no_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The operating system's copy lies in a folder that is still empty."""
    card = CATALOGUE["fashion_mnist"]
    assert card.package is not None
    folder = tmp_path / "package"
    moved = replace(card, package=replace(card.package, folder=str(folder)))
    monkeypatch.setitem(CATALOGUE, "fashion_mnist", moved)
    return folder


def pixels() -> np.ndarray:
    return load(DataSettings(name="fashion_mnist"), Key(0)).train.inputs.numpy()


def test_files_are_fetched_once(hub: FakeHub, own_cache: Path) -> None:
    for _ in range(2):
        np.testing.assert_array_equal(pixels(), IMAGES)
    assert len(hub.requests) == 3
    assert not any("README" in path for path in hub.requests)
    assert not [path for path in own_cache.rglob("*") if path.name.endswith(".tmp")]


@pytest.mark.parametrize("lost", ["fashion_mnist/test-00000-of-00001", "fashion_mnist/train-00001-of-00002"])
def test_an_interrupted_fetch_goes_on_where_it_stopped(hub: FakeHub, own_cache: Path, lost: str) -> None:
    train = hub.files.pop("fashion_mnist/train-00000-of-00001.parquet")
    for number in range(2):
        path = f"fashion_mnist/train-0000{number}-of-00002.parquet"
        hub.files[path], hub.announced[path] = train, hashlib.sha256(train).hexdigest()
    assert len(pixels()) == 20
    (file,) = own_cache.rglob(f"{lost}.parquet")
    file.unlink()
    hub.requests.clear()
    assert len(pixels()) == 20
    assert [path for path in hub.requests if "resolve" in path] == [f"/datasets/{NAME}/resolve/main/{lost}.parquet"]


def test_a_wrong_checksum_leaves_nothing_behind(hub: FakeHub, own_cache: Path) -> None:
    hub.announced["fashion_mnist/train-00000-of-00001.parquet"] = "0" * 64
    with pytest.raises(DataError, match="another size or checksum than the hub announces; try again"):
        pixels()
    assert not [path for path in own_cache.rglob("*") if path.is_file()]


def test_a_hub_without_the_files(hub: FakeHub) -> None:
    hub.files = {}
    with pytest.raises(DataError, match="has no file fashion_mnist/train"):
        pixels()


def test_a_path_that_leads_elsewhere_is_not_followed(hub: FakeHub, own_cache: Path) -> None:
    hub.files["fashion_mnist/train-/../../../escaped.parquet"] = b"evil"
    hub.announced["fashion_mnist/train-/../../../escaped.parquet"] = hashlib.sha256(b"evil").hexdigest()
    np.testing.assert_array_equal(pixels(), IMAGES)
    assert not list(own_cache.parent.rglob("escaped.parquet"))


def test_a_connection_that_breaks_off_leaves_nothing_behind(hub: FakeHub, own_cache: Path) -> None:
    path = "fashion_mnist/train-00000-of-00001.parquet"
    hub.sent[path] = hub.files[path][:100]
    with pytest.raises(DataError, match="another size or checksum"):
        pixels()
    assert not [file for file in own_cache.rglob("*") if file.is_file()]


def test_the_cache_of_hugging_face_comes_before_the_hub(
    hub: FakeHub, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    snapshot = tmp_path / "hub" / "datasets--zalando-datasets--fashion_mnist" / "snapshots" / "abc"
    for path, content in hub.files.items():
        (snapshot / path).parent.mkdir(parents=True, exist_ok=True)
        (snapshot / path).write_bytes(content)
    monkeypatch.delenv("HF_HUB_CACHE")
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    np.testing.assert_array_equal(pixels(), IMAGES)
    assert not hub.requests


@pytest.mark.usefixtures("hub")
def test_the_package_of_the_system_comes_last(no_package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = random_images(10, side=28, channels=1, seed=1)
    write_mnist(no_package, other, np.arange(10))
    np.testing.assert_array_equal(pixels(), IMAGES)
    monkeypatch.setenv("FEDFUSE_CACHE", str(no_package / "empty"))
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    np.testing.assert_array_equal(pixels(), other)


def test_without_a_network_one_sentence_says_what_to_put_where(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FEDFUSE_DATA", raising=False)
    with pytest.raises(
        DataError,
        match=r"Fashion-MNIST is not on this machine .* put fashion_mnist-train\.parquet and "
        r"fashion_mnist-test\.parquet, or fashion-mnist/train-images-idx3-ubyte.* into a folder and "
        r"name it in data\.path or FEDFUSE_DATA",
    ):
        pixels()
