"""Packages of a built binary: archive, Debian package, container image, bill of materials, checksums.

    python3 deploy/package/dist.py target/x86_64-unknown-linux-musl/dist/walras --out target/packages

Needs Python 3.11 and cargo, and no network. The same binary and commit make the same bytes: entries are sorted, and times
are that of the commit (SOURCE_DATE_EPOCH is another). A binary that is linked against glibc has in its image the libraries
that this machine links it with; a static one needs none.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import io
import json
import os
import re
import subprocess
import sys
import tarfile
import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# The number of a machine in an ELF header: its names for Rust, Debian, and containers.
MACHINES = {62: ("x86_64", "amd64", "amd64"), 183: ("aarch64", "arm64", "arm64")}
INTERPRETER = 3
USER = 65532
# How hard is compressed: 9 for what is given out.
LEVEL = int(os.environ.get("WALRAS_PACKAGE_LEVEL", "9"))
MAINTAINER = "The Walras authors <walras@localhost.invalid>"

POSTINST = """#!/bin/sh
set -e
if [ "$1" = configure ]; then
    if command -v systemd-sysusers >/dev/null; then
        systemd-sysusers walras.conf
    elif ! getent passwd walras >/dev/null; then
        adduser --system --group --no-create-home --home /var/lib/walras walras
    fi
    if [ -d /run/systemd/system ]; then
        systemctl daemon-reload
        [ -z "$2" ] || systemctl try-restart walras.service 'walras-shard@*.service'
    fi
fi
"""
PRERM = """#!/bin/sh
set -e
if [ "$1" = remove ] && [ -d /run/systemd/system ]; then
    systemctl disable --now walras.service 'walras-shard@*.service'
fi
"""
SYSUSERS = 'u walras - "Walras node" /var/lib/walras\n'


class Fault(Exception):
    """What is wrong, where, and what to do."""


@dataclass(frozen=True)
class Binary:
    """An executable: its bytes, the machine's names, and the loader that it asks for."""

    path: Path
    content: bytes
    rust: str
    debian: str
    container: str
    loader: str | None

    @staticmethod
    def read(path: Path) -> Binary:
        try:
            content = path.read_bytes()
        except OSError as error:
            raise Fault(f"{path}: {error.strerror}; build it first, see `make dist`") from error
        if content[:6] != b"\x7fELF\x02\x01":
            raise Fault(f"{path} is no executable of 64-bit Linux; give the binary that cargo built")
        machine = int.from_bytes(content[18:20], "little")
        if machine not in MACHINES:
            known = ", ".join(names[0] for names in MACHINES.values())
            raise Fault(f"{path} is for machine {machine}; packages are made for {known}")
        return Binary(path, content, *MACHINES[machine], loader_of(content))

    @property
    def glibc(self) -> str | None:
        """The least version of glibc that it asks for; None for a static one."""
        if self.loader is None:
            return None
        found = {tuple(map(int, one.split(b"."))) for one in re.findall(rb"GLIBC_(2\.\d+)", self.content)}
        return ".".join(map(str, max(found, default=(2, 17))))


def mistakes() -> set[str]:
    """Names of the mistakes that simulations plant in the code that runs in production, read from its source."""
    names: set[str] = set()
    for file in (ROOT / "crates").glob("*/src/**/*.rs"):
        for body in re.findall(r"enum \w*(?:Mistake|Defect) \{(.*?)\n\s*\}", file.read_text(), re.DOTALL):
            names.update(re.findall(r"^\s*([A-Z][a-z]+(?:[A-Z][a-z]*)+),", body, re.MULTILINE))
    return names


# What a binary says in which mistakes can be planted.
PLANTABLE = "this binary was built together with the laboratory"


def check_planted(content: bytes) -> None:
    """Cargo joins the features of packages that are built together: with the laboratory, mistakes can be planted."""
    found = sorted(name for name in [PLANTABLE, *mistakes()] if name.encode() in content)
    if found:
        raise Fault(f"mistakes can be planted in the binary ({found[0]}); build it alone, see `make dist`")


def loader_of(content: bytes) -> str | None:
    """The interpreter that an ELF file names."""
    start, size, count = (
        int.from_bytes(content[32:40], "little"),
        int.from_bytes(content[54:56], "little"),
        int.from_bytes(content[56:58], "little"),
    )
    for at in range(start, start + size * count, size):
        if int.from_bytes(content[at : at + 4], "little") == INTERPRETER:
            offset = int.from_bytes(content[at + 8 : at + 16], "little")
            length = int.from_bytes(content[at + 32 : at + 40], "little")
            return content[offset : offset + length].rstrip(b"\0").decode()
    return None


def libraries(binary: Binary) -> dict[str, bytes]:
    """The loader and the shared libraries of a binary that is not static, by the paths at which it looks for them."""
    if binary.loader is None:
        return {}
    told = subprocess.run(["ldd", str(binary.path)], capture_output=True, text=True, check=True).stdout
    paths = {binary.loader, *re.findall(r"=> (/\S+)", told)}
    return {path: Path(path).read_bytes() for path in sorted(paths)}


@dataclass(frozen=True)
class Entry:
    """A file of an archive."""

    name: str
    content: bytes
    mode: int = 0o644


def archive(entries: list[Entry], time: int) -> bytes:
    """A tar file of entries and their folders, sorted, without anything of this machine."""
    root = "./" if all(one.name.startswith("./") for one in entries) else ""
    folders = {root + str(parent) for one in entries for parent in Path(one.name).parents if str(parent) != "."}
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for folder in sorted(folders):
            info = tarfile.TarInfo(f"{folder}/")
            info.type, info.mode, info.mtime = tarfile.DIRTYPE, 0o755, time
            info.uname = info.gname = "root"
            tar.addfile(info)
        for one in sorted(entries, key=lambda one: one.name):
            info = tarfile.TarInfo(one.name)
            info.size, info.mode, info.mtime = len(one.content), one.mode, time
            info.uname = info.gname = "root"
            tar.addfile(info, io.BytesIO(one.content))
    return out.getvalue()


def zipped(content: bytes) -> bytes:
    return gzip.compress(content, compresslevel=LEVEL, mtime=0)


def source(name: str) -> bytes:
    return (ROOT / name).read_bytes()


def debian(binary: Binary, version: str, time: int) -> bytes:
    """A Debian package: the binary, its unit, its user, and documents."""
    files = [
        Entry("./usr/bin/walras", binary.content, 0o755),
        Entry("./usr/lib/systemd/system/walras.service", source("deploy/systemd/walras.service")),
        Entry("./usr/lib/systemd/system/walras-shard@.service", source("deploy/systemd/walras-shard@.service")),
        Entry("./usr/lib/sysusers.d/walras.conf", SYSUSERS.encode()),
        Entry("./usr/share/doc/walras/operators.md", source("docs/operators.md")),
        Entry("./usr/share/doc/walras/copyright", source("LICENSE")),
        Entry("./usr/share/doc/walras/changelog.gz", zipped(source("CHANGELOG.md"))),
    ]
    depends = [] if binary.glibc is None else [f"Depends: libc6 (>= {binary.glibc}), libgcc-s1"]
    control = "\n".join(
        [
            "Package: walras",
            f"Version: {version}",
            f"Architecture: {binary.debian}",
            f"Maintainer: {MAINTAINER}",
            f"Installed-Size: {sum(len(one.content) for one in files) // 1024 + 1}",
            *depends,
            "Recommends: adduser | systemd",
            "Section: net",
            "Priority: optional",
            "Description: exchange and settlement ledger of several institutions",
            " A node, its tools and its page: batches at one price for every pair of assets,",
            " payments in one round trip, and Ethereum contracts on the same balances.",
            "",
        ]
    )
    sums = "".join(f"{hashlib.md5(one.content).hexdigest()}  {one.name[2:]}\n" for one in sorted(files, key=lambda one: one.name))
    steering = [
        Entry("./control", control.encode()),
        Entry("./md5sums", sums.encode()),
        Entry("./postinst", POSTINST.encode(), 0o755),
        Entry("./prerm", PRERM.encode(), 0o755),
    ]
    parts = [
        ("debian-binary", b"2.0\n"),
        ("control.tar.gz", zipped(archive(steering, time))),
        ("data.tar.gz", zipped(archive(files, time))),
    ]
    out = b"!<arch>\n"
    for name, content in parts:
        out += f"{name:<16}{time:<12}{0:<6}{0:<6}{'100644':<8}{len(content):<10}`\n".encode()
        out += content + b"\n" * (len(content) % 2)
    return out


def image(binary: Binary, version: str, time: int) -> bytes:
    """An image for containers in the layout of the Open Container Initiative, with one layer, as `docker load`, `podman load`
    and `skopeo copy oci-archive:` take it."""
    created = iso(time)
    passwd = f"root:x:0:0:root:/root:/sbin/nologin\nnonroot:x:{USER}:{USER}:nonroot:/var/lib/walras:/sbin/nologin\n"
    files = [
        Entry("usr/bin/walras", binary.content, 0o755),
        Entry("etc/passwd", passwd.encode()),
        Entry("etc/group", f"root:x:0:\nnonroot:x:{USER}:\n".encode()),
        Entry("usr/share/doc/walras/copyright", source("LICENSE")),
        *(Entry(path.lstrip("/"), content, 0o755) for path, content in libraries(binary).items()),
    ]
    plain = archive(files, time)
    layer = zipped(plain)
    settings = {
        "User": f"{USER}:{USER}",
        "Env": ["PATH=/usr/bin", "WALRAS_HOME=/var/lib/walras"],
        "Entrypoint": ["/usr/bin/walras"],
        "Cmd": ["node"],
        "ExposedPorts": {"8080/tcp": {}, "8545/tcp": {}, "9100/udp": {}},
        "StopSignal": "SIGTERM",
        "Labels": {"org.opencontainers.image.version": version, "org.opencontainers.image.licenses": "Apache-2.0"},
    }
    config = {
        "created": created,
        "architecture": binary.container,
        "os": "linux",
        "config": settings,
        "rootfs": {"type": "layers", "diff_ids": [digest(plain)]},
        "history": [{"created": created, "created_by": "deploy/package/dist.py"}],
    }
    blobs: dict[str, bytes] = {}

    def blob(content: bytes, kind: str) -> dict[str, object]:
        blobs[digest(content)] = content
        return {"mediaType": kind, "digest": digest(content), "size": len(content)}

    manifest = {
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": blob(compact(config), "application/vnd.oci.image.config.v1+json"),
        "layers": [blob(layer, "application/vnd.oci.image.layer.v1.tar+gzip")],
    }
    listed = blob(compact(manifest), "application/vnd.oci.image.manifest.v1+json")
    listed["annotations"] = {
        "io.containerd.image.name": f"docker.io/library/walras:{version}",
        "org.opencontainers.image.ref.name": version,
    }
    listed["platform"] = {"architecture": binary.container, "os": "linux"}
    index = {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": [listed]}
    # What `docker load` of before version 25 reads.
    older = [{"Config": place(manifest["config"]), "RepoTags": [f"walras:{version}"], "Layers": [place(manifest["layers"][0])]}]
    entries = [
        Entry("oci-layout", compact({"imageLayoutVersion": "1.0.0"})),
        Entry("index.json", compact(index)),
        Entry("manifest.json", compact(older)),
        *(Entry(f"blobs/sha256/{name.removeprefix('sha256:')}", content) for name, content in blobs.items()),
    ]
    return archive(entries, time)


def place(descriptor: dict[str, object]) -> str:
    return f"blobs/sha256/{str(descriptor['digest']).removeprefix('sha256:')}"


def compact(value: object) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def digest(content: bytes) -> str:
    return "sha256:" + hashlib.sha256(content).hexdigest()


def iso(time: int) -> str:
    from datetime import datetime, timezone

    return datetime.fromtimestamp(time, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass(frozen=True)
class Crate:
    """A crate that is linked; `license` is an SPDX expression, or empty."""

    name: str
    version: str
    license: str


def linked_crates(target: str) -> list[Crate]:
    """The crates that the binary links for a target; without those of builds, macros and tests."""
    command = ["cargo", "tree", "--locked", "--offline", "--package=walras", f"--target={target}", "--prefix=none"]
    command += ["--edges=normal,no-proc-macro", "--format={p}|{l}"]
    told = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    if told.returncode != 0:
        raise Fault(f"cargo tree: {told.stderr.strip().splitlines()[-1]}; run `cargo fetch --locked` with a network once")
    crates = set()
    for line in set(told.stdout.splitlines()):
        package, _, license = line.removesuffix(" (*)").rpartition("|")
        name, version = package.split()[:2]
        # A slash is the older way to write a choice.
        crates.add(Crate(name, version.removeprefix("v"), license.replace("/", " OR ")))
    return sorted(crates, key=lambda one: (one.name, one.version))


def materials(binary: Binary, version: str, time: int) -> bytes:
    """The bill of materials (CycloneDX 1.5): crates that are linked, and packages that the page bundles."""
    locked = tomllib.loads(source("Cargo.lock").decode())["package"]
    sums = {(one["name"], one["version"]): one.get("checksum") for one in locked}
    components = []
    for one in linked_crates(f"{binary.rust}-unknown-linux-{'gnu' if binary.loader else 'musl'}"):
        if one.name == "walras":
            continue
        checksum = sums.get((one.name, one.version))
        components.append(
            {
                "type": "library",
                "bom-ref": f"pkg:cargo/{one.name}@{one.version}",
                "name": one.name,
                "version": one.version,
                "purl": f"pkg:cargo/{one.name}@{one.version}",
                **({"hashes": [{"alg": "SHA-256", "content": checksum}]} if checksum else {}),
                **({"licenses": [{"expression": one.license}]} if one.license else {}),
            }
        )
    for name, one in sorted(json.loads(source("web/package-lock.json"))["packages"].items()):
        if name and not one.get("dev") and not one.get("link") and "node_modules/" in name:
            known = name.rpartition("node_modules/")[2]
            purl = f"pkg:npm/{known.replace('@', '%40', 1)}@{one['version']}"
            components.append(
                {
                    "type": "library",
                    "bom-ref": purl,
                    "name": known,
                    "version": one["version"],
                    "purl": purl,
                    **({"licenses": [{"expression": one["license"]}]} if one.get("license") else {}),
                }
            )
    subject = {
        "type": "application",
        "bom-ref": "walras",
        "name": "walras",
        "version": version,
        "licenses": [{"license": {"id": "Apache-2.0"}}],
        "hashes": [{"alg": "SHA-256", "content": hashlib.sha256(binary.content).hexdigest()}],
    }
    bom = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"timestamp": iso(time), "component": subject},
        "components": components,
    }
    return json.dumps(bom, indent=1).encode() + b"\n"


def commit_time() -> int:
    given = os.environ.get("SOURCE_DATE_EPOCH")
    if given is not None:
        if not given.isdecimal():
            raise Fault(f"SOURCE_DATE_EPOCH is {given!r}; it is a number of seconds since 1970")
        return int(given)
    told = subprocess.run(["git", "log", "-1", "--format=%ct"], capture_output=True, text=True, cwd=ROOT, check=False)
    # Outside of a repository, such as in an unpacked archive, nothing says when.
    return int(told.stdout) if told.returncode == 0 and told.stdout.strip() else 0


def make(binary: Binary, out: Path) -> list[Path]:
    version = tomllib.loads(source("Cargo.toml").decode())["workspace"]["package"]["version"]
    time = commit_time()
    name = f"walras-{version}-{binary.rust}-linux{'' if binary.loader is None else '-gnu'}"
    inside = [
        Entry(f"{name}/walras", binary.content, 0o755),
        *(Entry(f"{name}/{path}", source(path)) for path in ("LICENSE", "README.md", "deploy/systemd/walras.service")),
    ]
    made = {
        f"{name}.tar.gz": zipped(archive(inside, time)),
        f"walras_{version}_{binary.debian}.deb": debian(binary, version, time),
        f"{name}-image.tar": image(binary, version, time),
        f"{name}.cdx.json": materials(binary, version, time),
    }
    made["SHA256SUMS"] = "".join(f"{digest(made[one])[7:]}  {one}\n" for one in sorted(made)).encode()
    out.mkdir(parents=True, exist_ok=True)
    for one, content in made.items():
        (out / one).write_bytes(content)
    return [out / one for one in made]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary", type=Path)
    parser.add_argument("--out", type=Path, default=ROOT / "target" / "packages")
    given = parser.parse_args()
    try:
        binary = Binary.read(given.binary)
        check_planted(binary.content)
        for path in make(binary, given.out):
            print(f"{path.stat().st_size:>12}  {path}")
    except Fault as fault:
        print(f"error: {fault}", file=sys.stderr)
        return 1
    kind = "static" if binary.loader is None else f"linked against glibc {binary.glibc}: the image has this machine's"
    print(f"the binary is {kind}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
