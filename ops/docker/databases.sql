-- The proxy keeps a database of its own, so that its store does not share the ledger's tables.
create database proxy;
