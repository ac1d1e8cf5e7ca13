"""`weft serve`: the web page and the prediction API for all runs and comparisons below some folders.

`app.make_app(config)` puts it together; `catalogue` finds what there is, `models` keeps trained networks ready, one
file a protocol answers. Sits between commands and the rest: may import anything but commands and the parts of studies
that run jobs (of `studies.engine` only `data_facts`, which opens the data of a run). `config` and `catalogue` load
neither torch nor FastAPI.
"""
