"""The studies that come with weft, by the names that `weft study` knows; `registry` lists them and loads no torch."""
