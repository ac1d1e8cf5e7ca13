"""A study's runs as tasks of Ray: the only files that know Ray. `studies/engine/place.py` imports them, nobody else."""
