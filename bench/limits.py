"""What this machine can do at best: AES-128 blocks a second on one core, in the batches that gates use."""

from __future__ import annotations

import time

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

BATCH_BYTES = 256 << 10
SECONDS = 0.3


def aes_blocks_per_second() -> float:
    """Blocks of fixed-key AES-128-ECB a second and core, encrypting a buffer that stays in the cache."""
    encryptor = Cipher(algorithms.AES(bytes(16)), modes.ECB()).encryptor()
    source, target = bytes(BATCH_BYTES), bytearray(BATCH_BYTES + 16)
    rounds, started = 0, time.perf_counter()
    while time.perf_counter() - started < SECONDS:
        for _ in range(100):
            encryptor.update_into(source, target)
        rounds += 100
    return rounds * BATCH_BYTES / 16 / (time.perf_counter() - started)
