"""The dealer process: it deals correlated randomness to the nodes.

It never sees data or anything that is computed from data.

| file | what it is |
|---|---|
| `session.py` | the sans-IO session: seeds and material of one attempt |
| `in_order.py` | chunks dealt several at once, and handed on in their order |
| `frame_queue.py` | frames that wait for a node's stream, bounded in bytes |
| `attempt_run.py` | one attempt: who is there, and the task that deals |
| `server.py` | the gRPC server: one stream to every node, one-time use |
"""
