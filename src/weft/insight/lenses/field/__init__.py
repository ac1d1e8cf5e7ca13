"""Receptive fields: by theory and as measured."""
