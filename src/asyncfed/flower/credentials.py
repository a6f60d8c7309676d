"""Certificates and keys for a first try: a certificate authority, the SuperLink's certificate, the nodes' keys."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from asyncfed.core.errors import ConfigError
from asyncfed.flower.private_files import make_private_folder, narrow, write_private

DAYS_VALID = 365
_YESTERDAY = timedelta(days=1)


def make_certificates(folder: Path, hosts: tuple[str, ...] = ("127.0.0.1", "localhost")) -> None:
    """Write `ca.crt`, `ca.key`, `server.crt` and `server.key`; the certificate names each of `hosts`.

    An authority that exists already signs again, so that nodes that trust it need no new file.
    """
    if not hosts:
        raise ConfigError("A server certificate needs at least one host name or address that nodes will call it by.")
    make_private_folder(folder)
    narrow(folder.glob("*.key"))  # an older version, or a copy, may have left them readable
    if (folder / "ca.crt").exists() and (folder / "ca.key").exists():
        authority_key: Any = serialization.load_pem_private_key((folder / "ca.key").read_bytes(), None)
        authority = x509.load_pem_x509_certificate((folder / "ca.crt").read_bytes())
    else:
        authority_key = ec.generate_private_key(ec.SECP384R1())
        authority = _make_authority(authority_key)
        _write_key(folder / "ca.key", authority_key)
        (folder / "ca.crt").write_bytes(authority.public_bytes(serialization.Encoding.PEM))
    server_key = ec.generate_private_key(ec.SECP384R1())
    server = _make_server(server_key, hosts, authority, authority_key)
    _write_key(folder / "server.key", server_key)
    (folder / "server.crt").write_bytes(server.public_bytes(serialization.Encoding.PEM))


def make_node_key(file: Path) -> Path:
    """Write a node's private key to `file` and its public key, for the SuperLink, to `file`.pub. Returns the latter."""
    make_private_folder(file.parent)
    key = ec.generate_private_key(ec.SECP384R1())
    write_private(
        file,
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, serialization.NoEncryption()
        ),
    )
    public = file.with_name(file.name + ".pub")
    public.write_bytes(
        key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    )
    return public


def _make_authority(key: ec.EllipticCurvePrivateKey) -> x509.Certificate:
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "AsyncFed own authority")])
    usage = x509.KeyUsage(
        digital_signature=False,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=True,
        crl_sign=True,
        encipher_only=False,
        decipher_only=False,
    )
    return (
        _certificate(name, name, key.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA384())
    )


def _make_server(
    key: ec.EllipticCurvePrivateKey, hosts: tuple[str, ...], authority: x509.Certificate, authority_key: Any
) -> x509.Certificate:
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, hosts[0])])
    return (
        _certificate(name, authority.subject, key.public_key())
        .add_extension(x509.SubjectAlternativeName([_general_name(host) for host in hosts]), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key()), critical=False)
        .sign(authority_key, hashes.SHA384())
    )


def _certificate(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _YESTERDAY)  # clocks of other machines may be a little behind
        .not_valid_after(now + timedelta(days=DAYS_VALID))
    )


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _write_key(file: Path, key: ec.EllipticCurvePrivateKey) -> None:
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    write_private(file, pem)
