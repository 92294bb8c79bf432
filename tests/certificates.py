"""Certificates for tests: an authority, and what it signs for brokers and devices."""

import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

from tests.support_missing import lacks


class Pair(NamedTuple):
    """The files of a certificate and of its key."""

    certificate: Path
    key: Path


class Authority:
    """Signs certificates with a key of its own, by the command `openssl`."""

    def __init__(self, directory: Path, name: str = "fleet-ca") -> None:
        if not shutil.which("openssl"):
            lacks("openssl is not installed")
        directory.mkdir(parents=True, exist_ok=True)
        self._directory = directory
        self.file, self._key = directory / f"{name}.pem", directory / f"{name}.key"
        self._openssl("req", "-x509", *self._new_key(self._key), *_called(name), "-out", self.file)

    def signs(self, name: str, *, host: str = "") -> Pair:
        """Return a new certificate for `name`, which is valid for a host if there is one."""
        pair = Pair(self._directory / f"{name}.pem", self._directory / f"{name}.key")
        request = self._directory / f"{name}.csr"
        self._openssl("req", *self._new_key(pair.key), *_called(name), "-out", request)
        extensions = self._directory / f"{name}.ext"
        extensions.write_text(f"subjectAltName=DNS:{host}\n" if host else "")
        by = ("-CA", self.file, "-CAkey", self._key, "-CAcreateserial", "-days", "2")
        self._openssl("x509", "-req", "-in", request, *by, "-extfile", extensions)
        pair.key.chmod(0o600)
        return pair

    @staticmethod
    def _new_key(path: Path) -> tuple[object, ...]:
        return ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", path)

    def _openssl(self, *words: object) -> None:
        line = ["openssl", *map(str, words)]
        if words[0] == "x509":
            line += ["-out", str(words[3]).replace(".csr", ".pem")]
        subprocess.run(line, check=True, capture_output=True)


def _called(name: str) -> tuple[str, str]:
    return ("-subj", f"/CN={name}")
