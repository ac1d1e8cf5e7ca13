"""Classic filters, the first layer of a run, and its feature maps."""
