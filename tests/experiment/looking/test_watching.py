"""The live page as it is served: to whom, with which policy, only what is new, and until the end was seen."""

from __future__ import annotations

import json
import re
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from benchmarks.report.runs import Made, write_run

import fedfuse
from fedfuse.core.errors import ConfigError
from fedfuse.experiment.looking import watching
from tests.helpers import tiny_config
from tests.report.page.test_render import Page


def get(address: str, **headers: str) -> tuple[int, dict[str, str], str]:
    request = urllib.request.Request(address, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, dict(answer.headers), answer.read().decode()
    except urllib.error.HTTPError as answer:
        with answer:
            return answer.code, dict(answer.headers), answer.read().decode()


def test_the_page_may_ask_us_for_news_and_nobody_else(tmp_path: Path) -> None:
    write_run(tmp_path / "a", Made(rounds=2))
    with fedfuse.watch(tmp_path) as address:
        _, headers, html = get(address)
        assert get(address, Host="elsewhere.example")[0] == 403
    policy = headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "connect-src 'self'" in policy
    assert "frame-ancestors 'none'" in policy
    (within,) = [one["content"] for one in Page(html).of("meta") if one.get("http-equiv") == "Content-Security-Policy"]
    assert policy.startswith(within)
    assert not re.search(r"https?://(?!www\.w3\.org)", html)


def test_a_report_asks_nobody(tmp_path: Path) -> None:
    write_run(tmp_path / "a", Made(rounds=2))
    html = fedfuse.load_runs(tmp_path).report(tmp_path / "page.html").read_text()
    assert "connect-src" not in html
    assert "fetch(" not in html


def test_what_somebody_has_is_not_sent_again(tmp_path: Path) -> None:
    write_run(tmp_path / "a", Made(rounds=2))
    with fedfuse.watch(tmp_path) as address:
        for path in ("", "now"):
            status, headers, text = get(address + path)
            assert status == 200
            assert text
            status, _, text = get(address + path, **{"If-None-Match": headers["ETag"]})
            assert (status, text) == (304, "")


def test_a_second_one_on_the_same_port_is_refused(tmp_path: Path) -> None:
    with fedfuse.watch(tmp_path) as address:
        port = int(address.rpartition(":")[2].strip("/"))
        with pytest.raises(ConfigError, match="choose another port"), fedfuse.watch(tmp_path, port=port):
            pass


def test_whoever_looks_sees_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page is served until it was asked for once more, and not longer."""
    monkeypatch.setattr(watching, "PATIENCE", 30.0)
    seen = []

    def look() -> None:
        time.sleep(0.3)
        news = json.loads(get(f"{address}now")[2])
        seen.extend([news["now"], get(address)[2]])

    with fedfuse.watch(tmp_path) as address:
        get(f"{address}now"), get(address)
        write_run(tmp_path / "a", Made(rounds=2))
        looker = threading.Thread(target=look)
        looker.start()
    looker.join()
    assert all("The run is finished." in text for text in seen)


def test_nobody_waits_if_nobody_looks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching.time, "sleep", lambda _: pytest.fail("it waits"))
    with fedfuse.watch(tmp_path):
        pass


def test_a_run_that_is_watched_has_the_same_bits(tmp_path: Path) -> None:
    config = tiny_config("feddf")
    fedfuse.Experiment(config).run(tmp_path / "alone")
    enough = threading.Event()

    def look() -> None:
        while not enough.wait(0.01):
            get(f"{address}now"), get(address)

    with fedfuse.watch(tmp_path / "watched") as address:
        looker = threading.Thread(target=look)
        looker.start()
        try:
            fedfuse.Experiment(config).run(tmp_path / "watched")
        finally:
            enough.set()
            looker.join()
    alone, other = (sorted((tmp_path / name / "final").iterdir()) for name in ("alone", "watched"))
    assert [path.read_bytes() for path in alone] == [path.read_bytes() for path in other]
    names = [sorted(path.name for path in (tmp_path / name).iterdir()) for name in ("alone", "watched")]
    assert names[0] == names[1]
