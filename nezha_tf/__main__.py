"""`python -m nezha_tf PROGRAM --flags`: the same as the command `nezha_tf`."""

from nezha_tf.programs import start

if __name__ == "__main__":
    start.choose()
