"""The files for TLS, looked at one after the other, so that a mistake names its file.

OpenSSL says of a broken file, of a key of another certificate and of one with a password nearly the
same. A command looks at its start, and a connection whenever it is opened.
"""

import contextlib
import ssl
from pathlib import Path

from lasp_edge.link.broker_url import TlsFiles

NO_PASSWORD = ""
"""The password of each key: asked for one, OpenSSL would read the terminal."""


class TlsFileError(ValueError):
    """A file for TLS cannot be used; the text says which, why, and what to do."""


def tls_context(files: TlsFiles) -> "ssl.SSLContext":
    """Return what a connection with these files needs.

    Raises:
        TlsFileError: a file cannot be used.
    """
    try:
        context = ssl.create_default_context(cafile=files.authority)
    except OSError as error:
        if files.authority is None:
            raise TlsFileError(f"the authorities of this machine cannot be read: {error}") from None
        raise TlsFileError(f"--ca-file {files.authority}: {_no_certificate(error)}") from None
    if files.certificate is not None:
        try:
            context.load_cert_chain(files.certificate, files.key, password=NO_PASSWORD)
        except OSError as error:
            raise TlsFileError(_wrong_pair(files.certificate, files.key, error)) from None
    return context


def _no_certificate(error: OSError) -> str:
    return str(error.strerror) if _is_of_disk(error) else "no certificate in PEM stands in it"


def _wrong_pair(certificate: str, key: str | None, error: OSError) -> str:
    """Return what is wrong with a certificate and its key, which OpenSSL reads as one."""
    try:
        ssl.create_default_context(cafile=certificate)
    except OSError as broken:
        return f"--certificate {certificate}: {_no_certificate(broken)}"
    if "KEY_VALUES_MISMATCH" in str(error):
        return f"--key {key or certificate}: it is not the key of --certificate {certificate}"
    named = f"--key {key}" if key else f"--certificate {certificate}"
    if _is_of_disk(error):
        return f"{named}: {error.strerror}"
    text = ""
    with contextlib.suppress(OSError, ValueError):
        text = Path(key or certificate).read_text(encoding="ascii")
    if "ENCRYPTED" in text:
        return (
            f"{named}: the key has a password; write one without: "
            f"openssl pkey -in {key or certificate} -out NEW"
        )
    more = "" if key else "; name the file that holds it: --key FILE"
    return f"{named}: no private key in PEM stands in it{more}"


def _is_of_disk(error: OSError) -> bool:
    return not isinstance(error, ssl.SSLError)
