"""Reads a program's flags as the program does, and prints their values."""

import json
import runpy
import sys

from absl import flags

from nezha_tf import settings

program, *arguments = sys.argv[1:]
names = runpy.run_path(program, run_name="program")
for name, value in names.items():
    if name.endswith("Settings"):
        settings.define(value)
flags.FLAGS([program, *arguments])
print(json.dumps(flags.FLAGS.flag_values_dict()))
