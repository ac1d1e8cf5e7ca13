"""The lenses, a folder or a file each; `insight/registry.py` lists them."""
