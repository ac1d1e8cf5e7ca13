"""Studies e9 and e10: the families side by side, at several costs and at one. They share candidates and runs: what one
of them has trained, or a comparison or a recipe, the other takes over."""
