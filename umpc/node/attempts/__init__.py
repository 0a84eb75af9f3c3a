"""One study at this node, from its proposal to its release, over the network.

| file | what it is |
|---|---|
| `study_run.py` | one study: its proposal, and what is done about it |
| `attempt_steps.py` | the steps of an attempt, with the ledger between them |
| `coordinator_stream.py` | the messages with the study's coordinator |
| `attempt_runner.py` | the course of an attempt: links, material and rounds |
| `mesh_preparation.py` | all that a node with peers does before the data |
| `site.py` | what a run needs of its process |
| `run_compute.py` | a run's computation, in a thread or in place |
| `run_links.py` | a run's links to its peers |
| `run_material.py` | a run's material: asked of the dealer, read, kept on disk |
| `run_channels.py` | a run's channels of transfers: taken, and made for the next study |
| `run_delivery.py` | a run's delivery to the shufflers |
| `run_traffic.py` | a run's bytes and rounds, as they are reported |
| `guard.py` | the end of a study's steps by a violation |
| `compute_threads.py` | threads that compute, used by one run after the other |
| `prepared_attempts.py` | attempts that are prepared and wait for their run |
| `total.py` | masked vectors that the coordinator adds up: the own one, and the total |
| `release.py` | the end of an attempt: held, charged, sent |
| `held_run.py` | a study whose finished attempt is held here: released or dropped |
| `questions.py` | the one answer after a release, in protocols that ask |
| `replay.py` | a study that was released before: the stored bytes are sent again |
| `rounds.py` | the protocols' rounds, driven over links with the dealer's material |
| `running_chunks.py` | the chunks on their way: when, in which batches, computed where |
| `field_rounds.py` | round 1: masked records, with all peers at once |
| `batch_rounds.py` | the rounds of small chunks that are computed together |
| `links.py` | links over streams: dialling and waiting |
| `next_channels.py` | channels of transfers that wait for the next study |
| `making_channels.py` | the making of these channels, after a study that ended well |
| `peers.py` | one link: frames by their place, and its mailbox |
| `material.py` | the dealer's material, read ahead up to a window |
| `spool.py` | material on disk, encrypted, that waits for a run |
| `delivery.py` | the streams to a study's two shufflers |
"""
