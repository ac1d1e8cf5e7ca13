"""The study e2: the networks of tables 2 and 5 of the course work, their sizes, speed, memory and cost on this machine.

`published_rows.py` has the tables, `measure_row.py` times one row in a worker, `speed_study.py` runs the rows one by
one, `speed_orderings.py` judges the published orders, `speed_drawing.py` draws it all from the records of the rows.
"""
