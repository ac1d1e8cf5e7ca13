"""The parts of networks: activations, embeddings, positions, attention, blocks, convolutions, noise, loss over words.

Needs torch alone; every other folder may import it.
"""
