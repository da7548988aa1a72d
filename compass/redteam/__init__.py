"""Red team: a prompt-injection detector over layered normalisation, its corpora and its attacks."""
