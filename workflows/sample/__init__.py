"""The bundled sample corpus and its questions."""
