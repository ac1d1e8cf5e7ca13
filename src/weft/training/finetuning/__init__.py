"""Fine-tuning: a network that was trained before, here or elsewhere, learns the targets of a source.

Imports what `training` may. `config` is one of the kinds of run (`training/run/kinds.py`), known wherever kinds differ;
`prepare` is imported where such runs are opened, judged, or read as features.
"""
