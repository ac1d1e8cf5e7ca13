"""How networks are asked over HTTP, one file a protocol; all answer from `serve.models` and refuse with a sentence."""
