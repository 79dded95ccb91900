"""The model in Keras, with `keras.ops`; only `compiled_parts` imports TensorFlow, to compile."""
