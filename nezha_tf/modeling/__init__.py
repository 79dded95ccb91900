"""The model in Keras: layers written with `keras.ops`, without an import of TensorFlow."""
