"""Packages of a binary: python3 deploy/package/test_dist.py target/debug/walras"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import unittest
from pathlib import Path

os.environ["WALRAS_PACKAGE_LEVEL"] = "1"
sys.path.insert(0, str(Path(__file__).parent))
import dist  # noqa: E402

BINARY = Path(sys.argv.pop(1)) if len(sys.argv) > 1 and not sys.argv[1].startswith("-") else None


def run(*command: str | Path) -> str:
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, check=True).stdout


class Packages(unittest.TestCase):
    out: Path
    binary: dist.Binary

    @classmethod
    def setUpClass(cls) -> None:
        if BINARY is None:
            raise unittest.SkipTest("name the binary: test_dist.py target/debug/walras")
        cls.binary = dist.Binary.read(BINARY.resolve())
        cls.folder = tempfile.TemporaryDirectory()
        cls.out = Path(cls.folder.name)
        dist.make(cls.binary, cls.out)
        cls.version = run(BINARY.resolve(), "--version").split()[1]

    @classmethod
    def tearDownClass(cls) -> None:
        if BINARY is not None:
            cls.folder.cleanup()

    def only(self, ending: str) -> Path:
        (found,) = [one for one in self.out.iterdir() if one.name.endswith(ending)]
        self.assertIn(self.version, found.name)
        return found

    def test_every_file_is_among_the_checksums(self) -> None:
        lines = (self.out / "SHA256SUMS").read_text().splitlines()
        sums = {name: sum for sum, name in (line.split("  ") for line in lines)}
        others = {one.name for one in self.out.iterdir()} - {"SHA256SUMS"}
        self.assertEqual(set(sums), others)
        self.assertEqual(len(others), 4)
        for name, known in sums.items():
            self.assertEqual(hashlib.sha256((self.out / name).read_bytes()).hexdigest(), known, name)

    def test_the_archive_runs(self) -> None:
        with tempfile.TemporaryDirectory() as folder, tarfile.open(self.only(".tar.gz")) as tar:
            self.assertTrue(all(one.uid == 0 and one.uname == "root" for one in tar))
            tar.extractall(folder, filter="data")
            (inside,) = Path(folder).iterdir()
            self.assertEqual(run(inside / "walras", "--version"), f"walras {self.version}\n")
            self.assertTrue((inside / "LICENSE").is_file() and (inside / "deploy/systemd/walras.service").is_file())

    @unittest.skipUnless(shutil.which("dpkg-deb"), "dpkg-deb is missing")
    def test_the_debian_package_is_one_and_its_unit_starts_what_is_in_it(self) -> None:
        package = self.only(".deb")
        fields = dict(line.split(": ", 1) for line in run("dpkg-deb", "--field", package).splitlines() if ": " in line)
        self.assertEqual((fields["Package"], fields["Version"]), ("walras", self.version))
        self.assertEqual(fields["Architecture"], run("dpkg", "--print-architecture").strip())
        self.assertEqual("Depends" in fields, self.binary.loader is not None)
        with tempfile.TemporaryDirectory() as folder:
            run("dpkg-deb", "--extract", package, folder)
            run("dpkg-deb", "--control", package, f"{folder}/DEBIAN")
            self.assertEqual(run(f"{folder}/usr/bin/walras", "--version"), f"walras {self.version}\n")
            unit = Path(folder, "usr/lib/systemd/system/walras.service").read_text()
            (start,) = [line for line in unit.splitlines() if line.startswith("ExecStart=")]
            self.assertTrue(Path(folder, start.removeprefix("ExecStart=").split()[0].lstrip("/")).is_file(), start)
            (document,) = [line for line in unit.splitlines() if line.startswith("Documentation=file://")]
            self.assertTrue(Path(folder, document.removeprefix("Documentation=file:///")).is_file(), document)
            user = next(line for line in unit.splitlines() if line.startswith("User=")).removeprefix("User=")
            self.assertIn(f"u {user} ", Path(folder, "usr/lib/sysusers.d/walras.conf").read_text())
            for script in ("postinst", "prerm"):
                run("sh", "-n", f"{folder}/DEBIAN/{script}")
            sums = [line.split("  ") for line in Path(folder, "DEBIAN/md5sums").read_text().splitlines()]
            for known, name in sums:
                self.assertEqual(hashlib.md5(Path(folder, name).read_bytes()).hexdigest(), known, name)
            files = {str(one.relative_to(folder)) for one in Path(folder).rglob("*") if one.is_file()}
            self.assertEqual({name for _, name in sums}, {one for one in files if not one.startswith("DEBIAN/")})

    def test_the_image_is_whole_and_runs_with_nothing_else(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            with tarfile.open(self.only("-image.tar")) as tar:
                tar.extractall(folder, filter="data")
            blobs = Path(folder, "blobs/sha256")
            for one in blobs.iterdir():
                self.assertEqual(hashlib.sha256(one.read_bytes()).hexdigest(), one.name)

            def read(descriptor: dict[str, object]) -> bytes:
                content = blobs.joinpath(str(descriptor["digest"]).removeprefix("sha256:")).read_bytes()
                self.assertEqual(len(content), descriptor["size"])
                return content

            (listed,) = json.loads(Path(folder, "index.json").read_text())["manifests"]
            manifest = json.loads(read(listed))
            config = json.loads(read(manifest["config"]))
            self.assertEqual((config["os"], config["architecture"]), ("linux", self.binary.container))
            self.assertEqual(config["config"]["User"], "65532:65532", "it is not root")
            (layer,) = manifest["layers"]
            place = blobs / layer["digest"].removeprefix("sha256:")
            root = Path(folder, "root")
            with tarfile.open(place) as tar:
                tar.extractall(root, filter="tar")
            (older,) = json.loads(Path(folder, "manifest.json").read_text())
            self.assertEqual((Path(folder, older["Config"]).is_file(), older["RepoTags"]), (True, [f"walras:{self.version}"]))
            if os.geteuid() == 0:
                command = ["chroot", "--userspec=65532:65532", root, *config["config"]["Entrypoint"], "--version"]
                self.assertEqual(run(*command), f"walras {self.version}\n")

    def test_the_bill_of_materials_names_what_is_linked_and_no_tool(self) -> None:
        bom = json.loads(self.only(".cdx.json").read_text())
        self.assertEqual((bom["bomFormat"], bom["specVersion"]), ("CycloneDX", "1.5"))
        names = {one["name"] for one in bom["components"]}
        self.assertLessEqual({"axum", "tokio", "revm", "ledger", "clearing", "uplot", "@noble/curves"}, names)
        self.assertFalse(names & {"proptest", "syn", "vite", "playwright-core", "walras"}, "what only tests and builds use")
        references = [one["bom-ref"] for one in bom["components"]]
        self.assertEqual(len(references), len(set(references)))
        locked = {(one["name"], one["version"]) for one in tomllib.loads(dist.source("Cargo.lock").decode())["package"]}
        crates = [one for one in bom["components"] if one["purl"].startswith("pkg:cargo/")]
        self.assertGreater(len(crates), 200)
        for one in crates:
            self.assertIn((one["name"], one["version"]), locked)
            self.assertTrue(one.get("licenses"), one["name"])
        self.assertEqual(bom["metadata"]["component"]["hashes"][0]["content"], hashlib.sha256(self.binary.content).hexdigest())


class Tool(unittest.TestCase):
    def test_the_same_binary_makes_the_same_bytes(self) -> None:
        binary = dist.Binary.read(Path(shutil.which("env") or "/usr/bin/env"))
        for make in (dist.debian, dist.image):
            self.assertEqual(make(binary, "1.2.3", 1_700_000_000), make(binary, "1.2.3", 1_700_000_000))
            self.assertNotEqual(make(binary, "1.2.3", 1_700_000_000), make(binary, "1.2.4", 1_700_000_000))

    def test_what_is_no_binary_is_named_with_the_remedy(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            text = Path(folder, "walras")
            for content, words in [(b"#!/bin/sh\n", "is no executable of 64-bit Linux"), (b"", "is no executable")]:
                text.write_bytes(content)
                with self.assertRaisesRegex(dist.Fault, words):
                    dist.Binary.read(text)
            with self.assertRaisesRegex(dist.Fault, "build it first"):
                dist.Binary.read(Path(folder, "absent"))
            header = bytearray(64)
            header[:6], header[18] = b"\x7fELF\x02\x01", 243
            text.write_bytes(bytes(header))
            with self.assertRaisesRegex(dist.Fault, "machine 243; packages are made for x86_64, aarch64"):
                dist.Binary.read(text)

    def test_a_binary_with_planted_mistakes_is_not_packaged(self) -> None:
        names = dist.mistakes()
        self.assertGreater(len(names), 100)
        self.assertLessEqual({"RetryIsNew", "VotesUnlogged", "MacUnchecked", "KeysKept", "ShownNotPosted"}, names)
        dist.check_planted(b"RetryIs and VotesUnlogge")
        self.assertIn(dist.PLANTABLE, dist.source("crates/walras/src/main.rs").decode())
        for name in ("RetryIsNew", "VotesUnlogged", dist.PLANTABLE):
            with self.assertRaisesRegex(dist.Fault, f"planted in the binary .{name}.; build it alone"):
                dist.check_planted(b"BondForgotte" + name.encode() + b"NeverLat")


if __name__ == "__main__":
    unittest.main()
