"""The parts of networks: activations, embeddings, positions, attention, blocks, convolutions, losses, noise.

Needs torch alone; every other folder may import it.
"""
