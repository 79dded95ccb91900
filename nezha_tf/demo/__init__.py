"""A web page on which models can be tried; it needs the extra [demo]."""
