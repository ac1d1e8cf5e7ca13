"""What happens to an input before the network sees it, and what of it is learnt from the training rows."""
