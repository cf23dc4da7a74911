"""A NumPy generator over a cryptographic stream: what a deployment draws vectors of noise from.

NumPy's own bit generators can be inverted from what they gave out, and a released vector gives out plenty. Here the
stream is SHAKE-256 of a secret key and a block counter (FIPS 202), so nothing of it tells the rest, or the key. The
same key gives the same stream.

NumPy takes a foreign bit generator as a C struct of callbacks (``bitgen_t`` of numpy/random/bitgen.h) in a capsule.
They are Python functions here: some 0.5 us a word, where a peer draws a few thousand a round.
"""

from __future__ import annotations

import ctypes
import hashlib
import struct
import threading
from typing import Any, cast

import numpy as np

BLOCK_WORDS = 1024
KEY_BYTES = 32

_Word = ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_void_p)
_Half = ctypes.CFUNCTYPE(ctypes.c_uint32, ctypes.c_void_p)
_Real = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_void_p)
_NAME = b"BitGenerator"  # the capsule's; it has to outlive it


class _BitGen(ctypes.Structure):
    _fields_ = (
        ("state", ctypes.c_void_p),
        ("next_uint64", _Word),
        ("next_uint32", _Half),
        ("next_double", _Real),
        ("next_raw", _Word),
    )


def _capsule(struct_: _BitGen) -> Any:
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
    return new(ctypes.addressof(struct_), _NAME, None)


class _KeyedBits:
    """The bit generator; ``np.random.Generator`` wants ``capsule`` and ``lock`` of it."""

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._block = 0
        self._words: list[int] = []
        self.lock = threading.Lock()
        self._struct = _BitGen(
            None,
            _Word(lambda _: self.word()),
            _Half(lambda _: self.word() >> 32),
            _Real(lambda _: (self.word() >> 11) * 2.0**-53),
            _Word(lambda _: self.word()),
        )
        self.capsule = _capsule(self._struct)

    def word(self) -> int:
        """The next 64 bits."""
        if not self._words:
            stream = hashlib.shake_256(self._key + self._block.to_bytes(8, "big")).digest(8 * BLOCK_WORDS)
            self._words = list(struct.unpack(f"<{BLOCK_WORDS}Q", stream))[::-1]
            self._block += 1
        return self._words.pop()


def generator(key: bytes) -> np.random.Generator:
    """A generator whose every bit follows from ``key``, 32 secret bytes that serve one purpose."""
    assert len(key) == KEY_BYTES
    return np.random.Generator(cast(Any, _KeyedBits(key)))
