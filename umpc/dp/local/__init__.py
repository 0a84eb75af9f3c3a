"""The papers' local protocols: every record is randomised at its node, the coordinator only adds up.
"""
