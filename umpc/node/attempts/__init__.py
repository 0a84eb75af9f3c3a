"""One study at this node, from its proposal to its release, over the network.

| file | what it is |
|---|---|
| `study_run.py` | one study: its proposal, and what is done about it |
| `attempt_steps.py` | the steps of an attempt, with the ledger between them |
| `coordinator_stream.py` | the messages with the study's coordinator |
| `attempt_runner.py` | the course of an attempt: links, material and rounds |
| `site.py` | what a run needs of its process |
| `run_material.py` | a run's material: asked of the dealer, read, kept on disk |
| `run_channels.py` | a run's channels of transfers: taken, and made for the next study |
| `prepared_attempts.py` | attempts that are prepared and wait for their run |
| `rounds.py` | the protocols' rounds, driven over links with the dealer's material |
| `running_chunks.py` | the chunks on their way: when, in which batches, computed where |
| `links.py` | links over streams: dialling and waiting |
| `next_channels.py` | channels of transfers that wait for the next study |
| `peers.py` | one link: frames by their place, and its mailbox |
| `material.py` | the dealer's material, read ahead up to a window |
| `spool.py` | material on disk, encrypted, that waits for a run |
| `delivery.py` | the streams to a study's two shufflers |
"""
