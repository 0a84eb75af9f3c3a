"""What this machine can do at best: AES-128 blocks a second on one core, in the batches that gates use."""

from __future__ import annotations

import time

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

BATCH_BYTES = 256 << 10
SECONDS = 0.3


def aes_blocks_per_second(seconds: float = SECONDS) -> float:
    """Blocks of fixed-key AES-128-ECB a second and core, encrypting a buffer that stays in the cache.

    Seconds of the processor, so that others on the machine do not lower the limit.
    """
    encryptor = Cipher(algorithms.AES(bytes(16)), modes.ECB()).encryptor()
    source, target = bytes(BATCH_BYTES), bytearray(BATCH_BYTES + 16)
    rounds, started = 0, time.process_time()
    while time.process_time() - started < seconds:
        for _ in range(100):
            encryptor.update_into(source, target)
        rounds += 100
    return rounds * BATCH_BYTES / 16 / (time.process_time() - started)
