"""What is installed in environments, and what of it has known vulnerabilities: audit.py TOOLS FOLDER ENVIRONMENT...

TOOLS is the environment of pip-audit and cyclonedx-bom, FOLDER gets the reports. Exit code 0: no vulnerabilities are
known; 1: some are; 3: the service that knows them could not be asked about any package of an environment.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

CLEAN, FOUND, UNKNOWN = 0, 1, 3
FROZEN = """
from importlib.metadata import distributions
for one in sorted({(one.name, one.version) for one in distributions()}):
    if not one[0].startswith("fedfuse"):
        print(f"{one[0]}=={one[1].partition('+')[0]}")  # a build such as 2.13.0+cpu is known as 2.13.0
"""


def audit(tools: Path, folder: Path, environment: Path) -> int:
    """Write down what is installed and ask about it."""
    python, name = environment / "bin" / "python", environment.name.lstrip(".")
    sbom, frozen, report = (folder / file for file in (f"sbom-{name}.json", f"frozen-{name}.txt", f"audit-{name}.json"))
    report.unlink(missing_ok=True)
    options = ["--output-reproducible", "--output-format", "JSON", "--output-file", str(sbom)]
    subprocess.run([tools / "bin" / "cyclonedx-py", "environment", *options, str(python)], check=True)
    frozen.write_text(subprocess.run([python, "-c", FROZEN], check=True, capture_output=True, text=True).stdout)
    options = ["--no-deps", "--disable-pip", "--progress-spinner", "off", "--format", "json", "--output", str(report)]
    subprocess.run([tools / "bin" / "pip-audit", *options, "--requirement", str(frozen)], stderr=subprocess.DEVNULL)
    code, sentence = verdict(report)
    print(f"{environment}: {sbom} says what is installed; {sentence}")
    return code


def verdict(report: Path) -> tuple[int, str]:
    """What pip-audit came to: its exit code is 1 both if it finds something and if it cannot ask, 0 if nobody knows."""
    packages: list[dict[str, Any]] = json.loads(report.read_text())["dependencies"] if report.exists() else []
    asked = [package for package in packages if "vulns" in package]
    bad = [f"{package['name']} {package['version']}" for package in asked if package["vulns"]]
    silent = [package["name"] for package in packages if "vulns" not in package]
    rest = f"; NOT AUDITED: {', '.join(silent)}" if silent else ""
    if not asked:
        return UNKNOWN, "NOT AUDITED, because the vulnerability service could not be asked"
    if bad:
        return FOUND, f"known vulnerabilities in {', '.join(bad)}, see {report}{rest}"
    return CLEAN, f"no known vulnerabilities in {len(asked)} packages{rest}"


def main(tools: str, folder: str, *environments: str) -> int:
    Path(folder).mkdir(parents=True, exist_ok=True)
    codes = {audit(Path(tools), Path(folder), Path(environment)) for environment in environments}
    return next(code for code in (FOUND, UNKNOWN, CLEAN) if code in codes)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
