"""Pre-training of text networks: masked-language modelling and next-sentence prediction, as a kind of run.

The life of the run, the loop and its storage are those of every run; here is what they are given: the configuration,
the batches with their masks, the network with its two heads, the objective and its metrics.
"""
