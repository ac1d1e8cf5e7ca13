"""The atomic writer by the name that training knows it by; it lives where the data side may import it too."""

from weft.atomic import explained, sync_folder, write_bytes, write_json

__all__ = ["explained", "sync_folder", "write_bytes", "write_json"]
