"""The experiments on text, E4 to E7: tables 6 to 9 of the course work, at three scales.

`published` holds the figures, `scales` how large a run is, `tables` who stands in each table; `budget`, `carry` and
`prediction` run it; `measured`, `orderings` and `drawing` say what came out. What a listing needs loads no torch.
"""
