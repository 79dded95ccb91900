"""The engines whose workers can make shards (`RUNNERS`). An engine is a small adapter:

- `Runner(name, options)` checks that the engine is installed and that it knows the options.
- `run(function, places)` calls a function for each place on the engine's workers. It returns when
  all are done, shows the progress if the engine tells it, and cancels the job when it is
  interrupted.

What the function does is in `work`, the same for all engines.
"""

from nezha_tf.corpus.runners.beam import BeamRunner
from nezha_tf.corpus.runners.spark import SparkRunner

# Name, for --runner, to class.
RUNNERS = {
    "DirectRunner": BeamRunner,
    "DataflowRunner": BeamRunner,
    "FlinkRunner": BeamRunner,
    "spark": SparkRunner,
}
