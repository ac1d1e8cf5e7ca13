"""`weft tune`: the space, its search, and the map of rates and widths."""
