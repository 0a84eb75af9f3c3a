"""Generated from umpc.proto (package umpc.v1) by `make proto`; not edited by hand."""
