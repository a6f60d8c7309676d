"""Certificates that a TLS library accepts, for the hosts they name, and keys nobody else can read."""

import socket
import ssl
import threading

import pytest
from cryptography.hazmat.primitives.serialization import load_ssh_private_key, load_ssh_public_key

from asyncfed.core.errors import ConfigError
from asyncfed.flower.credentials import make_certificates, make_node_key


def shake_hands(server_folder, authority, host):
    """A TLS handshake within this process; raises what the client complains of."""
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(server_folder / "server.crt", server_folder / "server.key")
    client = ssl.create_default_context(cafile=str(authority / "ca.crt"))
    here, there = socket.socketpair()

    def answer():
        try:
            server.wrap_socket(there, server_side=True).close()
        except (ssl.SSLError, OSError):
            there.close()

    answering = threading.Thread(target=answer)
    answering.start()
    try:
        client.wrap_socket(here, server_hostname=host).close()
    finally:
        here.close()
        answering.join()


def test_a_certificate_is_good_for_the_hosts_it_names(tmp_path):
    make_certificates(tmp_path, ("10.1.2.3", "superlink.example.org"))
    shake_hands(tmp_path, tmp_path, "10.1.2.3")
    shake_hands(tmp_path, tmp_path, "superlink.example.org")
    with pytest.raises(ssl.SSLCertVerificationError, match="certificate is not valid for"):
        shake_hands(tmp_path, tmp_path, "127.0.0.1")


def test_another_authority_is_not_believed(tmp_path):
    make_certificates(tmp_path / "ours")
    make_certificates(tmp_path / "theirs")
    with pytest.raises(ssl.SSLCertVerificationError):
        shake_hands(tmp_path / "theirs", tmp_path / "ours", "127.0.0.1")


def test_the_authority_stays_when_the_server_gets_a_new_certificate(tmp_path):
    make_certificates(tmp_path)
    authority = (tmp_path / "ca.crt").read_bytes()
    make_certificates(tmp_path, ("10.1.2.3",))
    assert (tmp_path / "ca.crt").read_bytes() == authority
    shake_hands(tmp_path, tmp_path, "10.1.2.3")


def test_a_certificate_for_nobody_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="needs at least one host name or address"):
        make_certificates(tmp_path, ())


def test_nobody_else_can_read_a_private_key(tmp_path):
    make_certificates(tmp_path)
    make_node_key(tmp_path / "node-0")
    for name in ("ca.key", "server.key", "node-0"):
        assert (tmp_path / name).stat().st_mode & 0o777 == 0o600


def test_a_nodes_keys_belong_together(tmp_path):
    public = make_node_key(tmp_path / "node-0")
    private = load_ssh_private_key((tmp_path / "node-0").read_bytes(), None)
    assert load_ssh_public_key(public.read_bytes()) == private.public_key()
    assert private.curve.name == "secp384r1"


def test_the_command_line_makes_both(cli, tmp_path):
    done = cli("flower", "certificates", "10.1.2.3", "superlink.example.org", "--folder", tmp_path / "certificates")
    assert done.code == 0, done.err
    shake_hands(tmp_path / "certificates", tmp_path / "certificates", "superlink.example.org")
    assert cli("flower", "key", tmp_path / "node").code == 0
    assert load_ssh_public_key((tmp_path / "node.pub").read_bytes())
    again = cli("flower", "key", tmp_path / "node")
    assert again.code == 2
    assert "exists already" in again.err
