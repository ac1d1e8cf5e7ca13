"""`weft probe`: which trained network suits this data? Simple classifiers on the cached features of several of them."""
