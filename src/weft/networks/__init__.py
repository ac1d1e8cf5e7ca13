"""The systems, one file a family: its equations, the part that makes it that family, its cost, its named sizes.

`base/` is what families are built from, `config` their fields, `registry` the names, `measure/` what is known of a
network before training, `weights/` foreign checkpoints.
Imports `nn`; imported by everything to its right (training, studies, insight, commands).
"""
