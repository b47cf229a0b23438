"""Both ends of an agent's connection, implemented only from contract/wire.h, common/auth.h and common/seal.h."""

import ctypes
import ctypes.util
import hashlib
import hmac
import os
import socket

import frames
import msgpack

PROTOCOL, OLDEST, TAG = 2, 1, 16
CRYPTO = ctypes.CDLL(ctypes.util.find_library("crypto") or "libcrypto.so.3")
CRYPTO.EVP_CIPHER_CTX_new.restype = CRYPTO.EVP_aes_256_gcm.restype = ctypes.c_void_p
GET_TAG, SET_TAG = 0x10, 0x11


class Forged(Exception):
    """A record that is not the next one sealed with its key."""


def gcm(key, nonce, head, data, tag=None):
    """(AES-256-GCM ciphertext, tag) of data or, with a tag, the plaintext."""
    context, n = ctypes.c_void_p(CRYPTO.EVP_CIPHER_CTX_new()), ctypes.c_int()
    out, made = ctypes.create_string_buffer(len(data) + 16), ctypes.create_string_buffer(tag or bytes(TAG), TAG)
    try:
        assert CRYPTO.EVP_CipherInit_ex(context, ctypes.c_void_p(CRYPTO.EVP_aes_256_gcm()), None, key, nonce, tag is None)
        assert CRYPTO.EVP_CipherUpdate(context, None, ctypes.byref(n), head, len(head))
        assert CRYPTO.EVP_CipherUpdate(context, out, ctypes.byref(n), data, len(data))
        if tag is not None:
            assert CRYPTO.EVP_CIPHER_CTX_ctrl(context, SET_TAG, TAG, made)
        if not CRYPTO.EVP_CipherFinal_ex(context, ctypes.byref(out, n.value), ctypes.byref(n)):
            raise Forged
        if tag is not None:
            return out.raw[:len(data)]
        assert CRYPTO.EVP_CIPHER_CTX_ctrl(context, GET_TAG, TAG, made)
        return out.raw[:len(data)], made.raw
    finally:
        CRYPTO.EVP_CIPHER_CTX_free(context)


class Direction:
    """Records sealed with one key, in order."""

    def __init__(self, key):
        self.key, self.count = key, 0

    def nonce(self):
        self.count += 1
        return bytes(4) + (self.count - 1).to_bytes(8, "little")

    def seal(self, data):
        head = (len(data) + TAG).to_bytes(4, "little")
        return head + b"".join(gcm(self.key, self.nonce(), head, data))

    def open(self, head, record):
        return gcm(self.key, self.nonce(), head, record[:-TAG], record[-TAG:])


def proof_and_keys(token, collector_nonce, agent_nonce, worker, offer=(OLDEST, PROTOCOL), version=PROTOCOL):
    """(the collector's proof, the key for data to it, the key for data to the agent)"""
    start = bytes([*offer, version]) + collector_nonce + agent_nonce + worker
    labels = b"crema proof of the collector", b"crema key to the collector", b"crema key to the agent"
    return [hmac.digest(token, label + b"\0" + start, hashlib.sha256) for label in labels]


class Peer:
    """One end: frames are plain at first, and sealed once there are keys."""

    def __init__(self, connection):
        self.socket, self.out, self.into = connection, None, None

    def read(self, n):
        data = b""
        while len(data) < n:
            part = self.socket.recv(n - len(data))
            if not part:
                raise ConnectionError("the other end hung up")
            data += part
        return data

    def next(self):
        """(header, stored payload) of the next frame."""
        if not self.into:
            head = frames.HEAD.unpack(self.read(frames.HEAD.size))
            return head, self.read(head[9])
        length = self.read(4)
        whole = self.into.open(length, self.read(int.from_bytes(length, "little")))
        return frames.HEAD.unpack_from(whole), whole[frames.HEAD.size:]

    def expect(self, kind):
        """The map in the next frame, which must have this type (frames.WELCOME ...), and the number in its header."""
        head, payload = self.next()
        assert head[2] == kind, (head, payload)
        return (msgpack.unpackb(payload) if payload else {}), head[6]

    def send(self, *whole):
        self.socket.sendall(b"".join(self.out.seal(frame) if self.out else frame for frame in whole))

    def close(self):
        self.socket.close()


class Agent(Peer):
    """Proves the token to a collector, in the old way with version=1, up to the point where it may send HELLO."""

    def __init__(self, port, token, worker, version=PROTOCOL):
        super().__init__(socket.create_connection(("127.0.0.1", port), timeout=60))
        offer, _ = self.expect(frames.CHALLENGE)
        self.offer, self.nonce = (offer["min"], offer["max"]), os.urandom(32)
        said = {"version": version, "nonce": self.nonce if token else None}
        if version == 1:
            said["mac"] = hmac.digest(token, offer["nonce"] + self.nonce + worker, hashlib.sha256)
        self.send(frames.frame(frames.AUTH, said, worker))
        if version != PROTOCOL:
            return
        mac = self.expect(frames.PROOF)[0]["mac"]
        if not token:
            assert mac is None
            return
        proof, up, down = proof_and_keys(token, offer["nonce"], self.nonce, worker, self.offer)
        if mac != proof:
            raise Forged
        self.out, self.into = Direction(up), Direction(down)
        self.send(frames.sealed(frames.PROOF, b"", worker))


class Collector(Peer):
    """The other end, up to AUTH; prove() continues. newest=1: the previous release."""

    def __init__(self, connection, oldest=OLDEST, newest=PROTOCOL):
        super().__init__(connection)
        self.offer, self.nonce = (oldest, newest), os.urandom(32)
        self.send(frames.frame(frames.CHALLENGE, {"min": oldest, "max": newest, "nonce": self.nonce}))

    def auth(self):
        head, payload = self.next()
        assert head[2] == frames.AUTH
        self.worker, self.auth_map = head[4], msgpack.unpackb(payload)
        return self.auth_map

    def prove(self, token):
        """token None: it has none. The frame is sent in any case; keys exist only with a token."""
        agent_nonce = self.auth_map["nonce"]
        if not token or not agent_nonce:
            self.send(frames.frame(frames.PROOF, {"mac": None}))
            return
        proof, up, down = proof_and_keys(token, self.nonce, agent_nonce, self.worker, self.offer)
        self.send(frames.frame(frames.PROOF, {"mac": proof}))
        self.out, self.into = Direction(down), Direction(up)
        assert self.next()[0][2] == frames.PROOF
