"""The systems, one file a family: its equations, the part that makes it that family, its cost, its named sizes.

`backbone` is what the token networks share; `registry` has the names, `foreign` the networks that users bring along,
`cost`, `receptive_field` and `description` what is known before training, `weights/` foreign checkpoints.
Imports `nn`; imported by everything to its right (training, studies, insight, commands).
"""
