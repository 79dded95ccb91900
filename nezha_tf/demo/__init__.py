"""A page on which a model can be tried; it needs the extra [demo]."""
