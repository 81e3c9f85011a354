"""The shipped files for clusters say what Ray and fedfuse expect to read."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
import typer.main
import yaml

from fedfuse.cli.app import app

FOLDER = Path(__file__).parents[2] / "deploy" / "ray"
PINNED = re.search(r"^ray==(\S+)$", (FOLDER.parents[1] / "constraints.txt").read_text(), re.MULTILINE)[1]


def read(name):
    return yaml.safe_load((FOLDER / name).read_text())


@pytest.fixture(scope="module")
def job():
    return read("rayjob.yaml")


def pods(job):
    cluster = job["spec"]["rayClusterSpec"]
    return [group["template"]["spec"] for group in (cluster["headGroupSpec"], *cluster["workerGroupSpecs"])]


class TestRayJob:
    def test_is_one(self, job):
        assert (job["apiVersion"], job["kind"]) == ("ray.io/v1", "RayJob")
        assert job["metadata"]["name"]

    def test_its_command_is_one_of_ours(self, job):
        program, command, *arguments = shlex.split(job["spec"]["entrypoint"])
        assert (program, command) == ("fedfuse", "run")
        run = typer.main.get_command(app).get_command(None, command)
        options = run.make_context("run", arguments).params
        assert (options["engine"], options["address"], options["resume"]) == ("ray", "auto", True)

    def test_what_the_command_reads_and_writes_is_mounted(self, job):
        head = pods(job)[0]
        mounts = {mount["mountPath"]: mount["name"] for mount in head["containers"][0]["volumeMounts"]}
        assert set(mounts.values()) == {volume["name"] for volume in head["volumes"]}
        for path in re.findall(r" (/\S+)", job["spec"]["entrypoint"]):
            assert any(path.startswith(f"{mount}/") for mount in mounts)

    def test_every_pod_has_one_image_and_limits(self, job):
        containers = [pod["containers"][0] for pod in pods(job)]
        assert {container["image"] for container in containers} == {"fedfuse-ray:latest"}
        for container in containers:
            assert container["resources"]["requests"] == container["resources"]["limits"]

    def test_replicas_are_within_their_bounds(self, job):
        for group in job["spec"]["rayClusterSpec"]["workerGroupSpecs"]:
            assert group["minReplicas"] <= group["replicas"] <= group["maxReplicas"]

    def test_its_ray_is_the_one_that_is_tested(self, job):
        assert job["spec"]["rayClusterSpec"]["rayVersion"] == PINNED
        assert f"rayproject/ray:{PINNED}-" in (FOLDER / "Dockerfile").read_text()


class TestCluster:
    def test_has_what_ray_up_requires(self):
        cluster = read("cluster.yaml")
        assert cluster["provider"]["type"] == "local"
        assert len(cluster["provider"]["worker_ips"]) == cluster["min_workers"] == cluster["max_workers"]
        assert cluster["auth"]["ssh_user"]
        assert cluster["docker"]["image"] == "fedfuse-ray:latest"
        assert any("ray start --head" in command for command in cluster["head_start_ray_commands"])
        assert any("--address=$RAY_HEAD_IP" in command for command in cluster["worker_start_ray_commands"])
