"""Oblivious transfers between two nodes, and what is made of them without a dealer.

| file | what it is |
|---|---|
| `message_shapes.py` | names, numbers and bytes of all messages, and nothing of their content |
| `channel_set_up.py` | the set-up of a channel of correlated transfers from 128 base transfers |
| `correlated_ot.py` | the two ends of a channel of correlated transfers by the million |
| `batch_columns.py` | the columns of a batch of transfers, and blocks from them |
| `ot_products.py` | chosen transfers, products, triples and conversions |
| `ot_inner_products.py` | inner products of private vectors, several with one vector |
| `coins_from_transfers.py` | a committee's coins: one member's part |
| `channels.py` | a member's channels to all others; a channel from a former one |
"""
