"""The examples for Slurm and Kubernetes, as far as they can be checked without either."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from weft.commands import compare
from weft.commands.main import parse

FOLDER = Path(__file__).parents[1] / "examples" / "cluster"
PAGE = Path(__file__).parents[1] / "docs" / "cluster.md"


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.sh")), ids=lambda path: path.name)
def test_scripts_for_slurm_parse_and_ask_for_nodes(path: Path) -> None:
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("no bash")
    done = subprocess.run([bash, "-n", str(path)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    text = path.read_text(encoding="utf-8")
    asked = dict(re.findall(r"^#SBATCH --([\w-]+)=(\S+)$", text, re.MULTILINE))
    assert {"nodes", "ntasks-per-node", "time", "job-name"} <= set(asked) and asked["ntasks-per-node"] == "1"
    assert "set -euo pipefail" in text


def test_the_manifest_is_a_rayjob_whose_pods_share_a_volume() -> None:
    claim, job = yaml.safe_load_all((FOLDER / "kuberay.yaml").read_text(encoding="utf-8"))
    assert (claim["kind"], claim["spec"]["accessModes"]) == ("PersistentVolumeClaim", ["ReadWriteMany"])
    assert (job["apiVersion"], job["kind"]) == ("ray.io/v1", "RayJob")
    cluster = job["spec"]["rayClusterSpec"]
    groups = [cluster["headGroupSpec"], *cluster["workerGroupSpecs"]]
    for group in groups:
        pod = group["template"]["spec"]
        assert pod["volumes"][0]["persistentVolumeClaim"]["claimName"] == claim["metadata"]["name"]
        (container,) = pod["containers"]
        mounted = {mount["mountPath"] for mount in container["volumeMounts"]}
        assert mounted == {"/shared"} and container["resources"]["limits"] == container["resources"]["requests"]
    assert len({group["template"]["spec"]["containers"][0]["image"] for group in groups}) == 1


def test_the_manifest_runs_a_command_that_weft_understands() -> None:
    *_, job = yaml.safe_load_all((FOLDER / "kuberay.yaml").read_text(encoding="utf-8"))
    verb, *words = shlex.split(job["spec"]["entrypoint"])[1:]
    asked = parse(compare.Arguments, verb, words)
    assert asked.config.on == "ray" and str(asked.output).startswith("/shared/")


def test_the_page_names_every_example() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert all(f"examples/cluster/{path.name}" in text for path in FOLDER.iterdir())
