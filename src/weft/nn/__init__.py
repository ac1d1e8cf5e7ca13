"""The parts of networks: activations, embeddings, positions, token mixers, gates, blocks, convolutions.

Needs torch alone; every other folder may import it.
"""
