"""The model in Keras, with `keras.ops`; only `between_products` imports TensorFlow, to compile."""
