"""Pages of Markdown, with charts, from the small records that a repository keeps. `drawing.py` is the one way in, and
there is a file for each kind of record. Knows dictionaries only, as all of `report/`; `commands/` imports it, and
studies do for the tables in their own folders."""
