"""From a path or a name to splits of examples with targets: labels, held-out rows, groups."""
