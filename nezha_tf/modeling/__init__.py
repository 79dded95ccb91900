"""The model in plain Keras: layers written with `keras.ops`, no import of tensorflow."""
