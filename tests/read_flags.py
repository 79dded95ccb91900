"""Reads a program's flags as the program does, and prints their values."""

import json
import runpy
import sys

from absl import flags

program, *arguments = sys.argv[1:]
runpy.run_path(program, run_name="program")
flags.FLAGS([program, *arguments])
print(json.dumps(flags.FLAGS.flag_values_dict()))
