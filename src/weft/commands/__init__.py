"""The `weft` command, one file a verb. Imports everything; nothing imports it."""
