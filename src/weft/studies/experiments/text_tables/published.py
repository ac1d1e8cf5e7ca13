"""The figures of tables 6 to 9, as printed: what each experiment is set beside.

Perplexities are those of masked-language modelling on C4 (Liu et al. 2021), accuracies in percent on SST-2 and on
MNLI's matched validation set. Parameters are in millions. Table 6's rows but `split` are met with an expanded width of
2048 only, so the published gates are not of equal size (92 M against 102 M).
"""

from __future__ import annotations

Figures = dict[str, float]  # of one row: parameters, perplexity, sst2, mnli


def row(parameters: float | None, perplexity: float | None, sst2: float | None, mnli: float | None) -> Figures:
    """A line of a table; what it leaves out is left out here."""
    named = {"parameters": parameters, "perplexity": perplexity, "sst2": sst2, "mnli": mnli}
    return {name: value for name, value in named.items() if value is not None}


TABLE_6: dict[str, Figures] = {
    "linear": row(92, 5.14, None, None),
    "additive": row(92, 4.97, None, None),
    "multiplicative": row(92, 4.53, None, None),
    "split": row(102, 4.35, None, None),
}

TABLE_7: dict[str, Figures] = {
    "bert-6": row(67, 4.91, 90.4, 81.5),
    "bert-12": row(110, 4.26, 91.3, 83.3),
    "bert-24": row(195, 3.83, 92.1, 85.2),
    "bert-48": row(365, 3.47, 92.8, 86.3),
    "gmlp-18": row(59, 5.25, 91.2, 77.7),
    "gmlp-36": row(102, 4.35, 92.3, 80.9),
    "gmlp-72": row(187, 3.79, 93.5, 82.8),
    "gmlp-144": row(357, 3.43, 95.1, 84.6),
}

TABLE_8: dict[str, Figures] = {  # the course work's own; `on trained` is on the embeddings of BERT
    "gmlp": row(None, None, 80.4, 65.1),
    "gmlp on trained": row(None, None, 88.1, 74.6),
    "split on trained": row(None, None, 88.6, 75.2),
    "toeplitz on trained": row(None, None, 89.8, 75.5),
}

TABLE_9: dict[str, Figures] = {  # the first two are the course work's, the others are Liu et al.'s and table 7's
    "gmlp on trained": row(None, None, 89.8, 75.5),
    "amlp on trained": row(None, None, 90.7, 77.1),
    "gmlp": row(59, None, 91.2, 77.7),
    "amlp": row(None, None, 91.9, 82.4),
    "bert": row(67, None, 90.4, 81.5),
}
