"""What `weft data show` tells and draws."""
