"""Files that ask for more than a machine has, that never end, or that lead elsewhere: one sentence, at once."""

from __future__ import annotations

import io
import os
import struct
import time
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fedfuse.core.errors import DataError
from fedfuse.core.randomness import Key
from fedfuse.data import DataSettings, load
from fedfuse.data.readers import Reading, bounds, read_npz
from fedfuse.data.readers.npz import Archive
from fedfuse.data.unlabelled import read_unlabelled

from .samples import encode, random_images


def read(name: str, path: Path, **settings: object) -> None:
    load(DataSettings.model_validate({"name": name, "path": str(path), **settings}), Key(0))


@pytest.fixture(autouse=True)
def _soon() -> Iterator[None]:
    began = time.process_time()
    yield
    assert time.process_time() - began < 5


def write_npz(path: Path, **members: bytes) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(f"{name}.npy", content)
    return path


def npy(array: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def with_header(text: str, content: bytes = bytes(64)) -> bytes:
    header = text.ljust(117).encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + content


LABELS = npy(np.arange(4))


@pytest.mark.parametrize(
    "header",
    [
        "{'descr': '<f4', 'fortran_order': False, 'shape': (4000000000000,), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (4, 99999999999, 99999999999), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (-4, -4), }",
        "{'descr': '<U0', 'fortran_order': False, 'shape': (4000000000000,), }",
        "{'descr': '|O', 'fortran_order': False, 'shape': (8,), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (4,",
        "(" * 90,
        "{'descr': '<f4', 'fortran_order': False, 'shape': (4, 3), }",
    ],
)
def test_a_header_that_says_more_than_there_is(tmp_path: Path, header: str) -> None:
    path = write_npz(tmp_path / "d.npz", x=with_header(header), y=LABELS)
    with pytest.raises(DataError, match="cannot be read as an npz archive of plain arrays"):
        read_npz(path, Reading())


def test_an_archive_that_unpacks_to_more_than_is_free(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_npz(tmp_path / "d.npz", x=npy(np.zeros((4, 100_000))), y=LABELS)
    assert path.stat().st_size < 10_000
    monkeypatch.setattr(bounds, "free_memory", lambda: 1_000_000)
    with pytest.raises(DataError, match=r"d\.npz, array 'x' needs 0\.0 GB of memory, but only 0\.0 GB are free"):
        read_npz(path, Reading())


def test_only_what_is_asked_for_is_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)
    path = write_npz(tmp_path / "d.npz", x=npy(np.asfortranarray(x)), y=LABELS, unused=npy(np.zeros((4, 100_000))))
    monkeypatch.setattr(bounds, "free_memory", lambda: 1_000_000)
    np.testing.assert_array_equal(read_npz(path, Reading())[0].inputs, x)
    assert sorted(Archive(path)) == ["unused", "x", "y"]
    assert "unused" in Archive(path)


def test_images_that_do_not_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for label in ("a", "b"):
        (tmp_path / label).mkdir()
        (tmp_path / label / "0.png").write_bytes(encode(random_images(1))[0])
    monkeypatch.setattr(bounds, "free_memory", lambda: 2 * 3 * 6 * 6 - 1)
    with pytest.raises(DataError, match=r"2 images as large as .*0\.png needs? .* of memory"):
        read("images", tmp_path)


def test_a_parquet_file_whose_rows_take_no_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "d.parquet"
    pq.write_table(pa.table({"a": np.zeros(1_000_000), "label": np.zeros(1_000_000, np.int64)}), path)
    assert path.stat().st_size < 20_000
    monkeypatch.setattr(bounds, "free_memory", lambda: 7_999_999)
    with pytest.raises(DataError, match=r"d\.parquet needs 0\.0 GB of memory"):
        read("parquet", path)


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    root = tmp_path / "photos"
    for label in ("a", "b"):
        (root / label).mkdir(parents=True)
        (root / label / "0.png").write_bytes(encode(random_images(1))[0])
    read("images", root)
    return root


def test_pipes_links_and_devices_among_images_are_never_opened(photos: Path) -> None:
    place = photos / "a" / "9.png"
    os.mkfifo(place)
    for _ in range(2):
        with pytest.raises(DataError, match=r"9\.png is no regular file"):
            read("images", photos)
        with pytest.raises(DataError, match=r"9\.png is no regular file"):
            read_unlabelled(photos, Reading())
        place.unlink()
        place.symlink_to(place)
    place.unlink()
    place.symlink_to("/dev/zero")
    with pytest.raises(DataError, match=r"9\.png is no regular file"):
        read("images", photos)
    place.unlink()
    place.symlink_to(photos / "b" / "0.png")
    read("images", photos)


@pytest.mark.parametrize("name", ["csv", "parquet", "npz"])
def test_a_pipe_among_tables_is_never_opened(tmp_path: Path, name: str) -> None:
    os.mkfifo(tmp_path / f"a.{name}")
    with pytest.raises(DataError, match=rf"a\.{name} is no regular file"):
        read(name, tmp_path)
    with pytest.raises(DataError, match=rf"holds no \.{name} files"):
        read(name, tmp_path / f"a.{name}")


@pytest.mark.parametrize("name", ["a.txt", "a.npz", "a.csv"])
def test_a_pipe_as_a_source_is_never_opened(tmp_path: Path, name: str) -> None:
    os.mkfifo(tmp_path / name)
    with pytest.raises(DataError, match="is no regular file"):
        read_unlabelled(tmp_path / name, Reading())


def blank_png(width: int, height: int) -> bytes:
    """One bit per pixel, all of them black, made without making the pixels."""

    def piece(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    packer = zlib.compressobj(1)
    row = bytes(1 + (width + 7) // 8)
    packed = b"".join(packer.compress(row) for _ in range(height)) + packer.flush()
    head = struct.pack(">2I5B", width, height, 1, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + piece(b"IHDR", head) + piece(b"IDAT", packed) + piece(b"IEND", b"")


@pytest.mark.filterwarnings("ignore::PIL.Image.DecompressionBombWarning")
@pytest.mark.parametrize("side", [9_500, 13_000, 20_000])
def test_an_image_of_too_many_pixels(photos: Path, side: int) -> None:
    (photos / "b" / "1.png").write_bytes(blank_png(side, side))
    with pytest.raises(DataError, match=r"1\.png has more than 89 million pixels; make it smaller"):
        read("images", photos, resize=4, channels=1)


def test_an_image_of_many_pixels_is_still_read(photos: Path) -> None:
    (photos / "b" / "1.png").write_bytes(blank_png(3000, 3000))
    read("images", photos, resize=4, channels=1)


@pytest.mark.parametrize("label", [10**5, 10**9, 2**62, 2**63 - 1, -1, -(2**63)])
def test_labels_far_away(tmp_path: Path, label: int) -> None:
    labels, values = np.array([label, 0, 1, 0]), np.arange(4.0)
    lines = "".join(f"{value},{one}\n" for value, one in zip(values, labels, strict=True))
    (tmp_path / "d.csv").write_text(f"a,label\n{lines}")
    np.savez(tmp_path / "d.npz", x=values[:, None], y=labels)
    pq.write_table(pa.table({"a": values, "label": labels}), tmp_path / "d.parquet")
    for name in ("csv", "npz", "parquet"):
        with pytest.raises(DataError, match=f"label {label} "):
            read(name, tmp_path / f"d.{name}")


def test_labels_beyond_signed_numbers(tmp_path: Path) -> None:
    """As int64 the first would be -1, which stands for no label at all."""
    labels = np.array([2**64 - 1, 0, 1, 0], np.uint64)
    np.savez(tmp_path / "d.npz", x=np.zeros((4, 1)), y=labels)
    with pytest.raises(DataError, match=r"row 0: label 18446744073709551615 is out of range"):
        read("npz", tmp_path / "d.npz")


def test_a_huge_label_among_test_examples(tmp_path: Path) -> None:
    np.savez(tmp_path / "d.npz", x_train=np.zeros((2, 1)), y_train=[0, 1], x_test=np.zeros((1, 1)), y_test=[2**62])
    with pytest.raises(DataError, match=rf"label {2**62} is out of range"):
        read("npz", tmp_path / "d.npz")


def test_two_columns_of_one_name(tmp_path: Path) -> None:
    (tmp_path / "d.csv").write_text("a,a,label\n1,2,0\n3,4,1\n")
    with pytest.raises(DataError, match=r"d\.csv has 2 columns 'a'; give each a name of its own"):
        read("csv", tmp_path / "d.csv")
    table = pa.Table.from_arrays([pa.array([1.0, 2.0]), pa.array([0, 1]), pa.array([0, 1])], ["a", "label", "label"])
    pq.write_table(table, tmp_path / "d.parquet")
    with pytest.raises(DataError, match=r"d\.parquet has 2 columns 'label'"):
        read("parquet", tmp_path / "d.parquet")
    (tmp_path / "d.csv").write_text("b,b,a,label\n1,2,1,0\n3,4,2,1\n")
    read("csv", tmp_path / "d.csv", ignore_columns=["b"])


@pytest.mark.parametrize(
    ("column", "what"),
    [("2024-01-01,2024-01-02", "holds dates or times"), ("12:30,09:15", "holds dates"), (",", "is empty in every row")],
)
def test_a_csv_column_that_cannot_be_an_input_is_not_dropped_in_silence(tmp_path: Path, column: str, what: str) -> None:
    one, other = column.split(",")
    (tmp_path / "d.csv").write_text(f"a,b,label\n1,{one},0\n2,{other},1\n")
    with pytest.raises(DataError, match=rf"column 'b' {what}.*; .* data\.ignore_columns: \[b\]"):
        read("csv", tmp_path / "d.csv")
    read("csv", tmp_path / "d.csv", ignore_columns=["b"])


def test_twenty_thousand_columns(tmp_path: Path) -> None:
    names = ",".join(f"c{number}" for number in range(20_000))
    (tmp_path / "d.csv").write_text(f"{names},label\n{'1,' * 20_000}0\n{'2,' * 20_000}1\n")
    read("csv", tmp_path / "d.csv")


@pytest.mark.parametrize("name", ["../secret.png", "a/../../secret.png", "/secret.png"])
def test_a_table_names_only_images_beside_it(tmp_path: Path, name: str) -> None:
    (tmp_path / "secret.png").write_bytes(encode(random_images(1))[0])
    folder = tmp_path / "shared"
    folder.mkdir()
    kind = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    said = str(tmp_path / "secret.png") if name.startswith("/") else name
    rows = pa.array([{"bytes": None, "path": said}] * 2, kind)
    pq.write_table(pa.table({"image": rows, "label": [0, 1]}), folder / "t.parquet")
    with pytest.raises(DataError, match=r"t\.parquet: '.*secret\.png' leads out of .*shared"):
        read("parquet", folder / "t.parquet")


def test_an_image_beside_a_table_that_is_replaced_is_read_again(tmp_path: Path) -> None:
    images = random_images(2)
    kind = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    rows = pa.array([{"bytes": None, "path": f"{number}.png"} for number in range(2)], kind)
    pq.write_table(pa.table({"image": rows, "label": [0, 1]}), tmp_path / "t.parquet")
    settings = DataSettings(name="parquet", path=str(tmp_path / "t.parquet"))
    for pixels in (images, 255 - images):
        for number, content in enumerate(encode(pixels)):
            (tmp_path / f"{number}.png").write_bytes(content)
        np.testing.assert_array_equal(load(settings, Key(0)).train.inputs.numpy(), pixels)


@pytest.mark.parametrize("path", ["a" * 5000, "a\0b"])
def test_paths_that_no_file_can_have(path: str) -> None:
    with pytest.raises(DataError, match=r"data\.path: .* does not exist") as caught:
        read("csv", Path(path))
    assert len(str(caught.value)) < 400


def test_a_folder_whose_name_is_no_text(photos: Path) -> None:
    (photos / os.fsdecode(b"caf\xe9")).mkdir()
    with pytest.raises(DataError, match=r"caf\\udce9' has a name that is not UTF-8"):
        read("images", photos)
