"""The AES limit of this machine: AES-128 blocks a second on one core, in the gates' batch size."""

from __future__ import annotations

import time

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

BATCH_BYTES = 256 << 10
SECONDS = 0.3


def aes_blocks_per_second(seconds: float = SECONDS) -> float:
    """Blocks of fixed-key AES-128-ECB a second on one core, for a buffer that stays in the cache.

    Seconds are those of the processor, so that other work on the machine does not lower the limit.
    """
    encryptor = Cipher(algorithms.AES(bytes(16)), modes.ECB()).encryptor()
    source, target = bytes(BATCH_BYTES), bytearray(BATCH_BYTES + 16)
    rounds, started = 0, time.process_time()
    while time.process_time() - started < seconds:
        for _ in range(100):
            encryptor.update_into(source, target)
        rounds += 100
    return rounds * BATCH_BYTES / 16 / (time.process_time() - started)
