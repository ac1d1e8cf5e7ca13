"""A comparison from the page: choose a source below the folders of --data, look at it, start, watch, stop, go on."""
