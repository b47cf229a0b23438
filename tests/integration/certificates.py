"""Certificate authorities of the tests, and what they sign. Each name stands for NAME.pem and NAME.key in the folder `home`."""

import socket
import ssl
import subprocess

EC = ("ec", "-pkeyopt", "ec_paramgen_curve:prime256v1")  # made in a hundredth of the time
RSA = ("rsa:2048",)


def openssl(home, *words):
    done = subprocess.run(["openssl", *map(str, words)], cwd=home, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def self_signed(home):
    """key.pem, and cert.pem for 127.0.0.1."""
    openssl(home, "req", "-x509", "-newkey", *EC, "-nodes", "-days", "30", "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1",
            "-keyout", "key.pem", "-out", "cert.pem")


def authority(home, name):
    openssl(home, "req", "-x509", "-newkey", *EC, "-nodes", "-days", "30", "-subj", f"/CN={name}",
            "-keyout", f"{name}.key", "-out", f"{name}.pem")


def certificate(home, name, signed_by, days="30", key=EC):
    openssl(home, "req", "-newkey", *key, "-nodes", "-subj", f"/CN={name}", "-keyout", f"{name}.key",
            "-out", f"{name}.csr")
    openssl(home, "x509", "-req", "-in", f"{name}.csr", "-CA", f"{signed_by}.pem", "-CAkey", f"{signed_by}.key",
            "-CAcreateserial", "-days", days, "-out", f"{name}.pem")


def spoken_to(port, **options):
    """A server's answer to a TLS client with these certificates: the version, then its first bytes."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if "cert" in options:
        context.load_cert_chain(*options["cert"])
    context.minimum_version = options.get("least", ssl.TLSVersion.TLSv1_2)
    context.maximum_version = options.get("most", ssl.TLSVersion.TLSv1_3)
    with socket.create_connection(("127.0.0.1", port), 30) as plain, context.wrap_socket(plain) as secure:
        return secure.version(), secure.recv(4096)
