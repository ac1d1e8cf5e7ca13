"""The studies e3 and e8: what pre-training brings to images, against learning from scratch and as its set grows.

`design.py` has the rows, the published figures and the questions, `scales.py` the networks at three scales,
`run_configs.py` the runs, `run_transfer.py` runs them, `few_shot.py` asks frozen networks, `questions.py` judges, and
`transfer_drawing.py` draws it all from the records.
"""
