#!/usr/bin/env bash
# Fine-tunes a model on the tasks of CLUE, and packs what the benchmark's site takes.
#
#   examples/clue.sh MODEL_FOLDER CLUE_DATA [flags for all programs, such as --num_seeds=3]
#
# examples/clue.py tells how CLUE_DATA looks. The results are in out/clue; another model or other
# flags need another folder: --output_dir=$PWD/out/other.
set -euo pipefail
model=${1:?the folder of the model}
# "mini" is also the name of the package's model.
[[ $model = mini && ! -e mini ]] || model=$(realpath "$model")
data=$(realpath "${2:?the folder of the data of CLUE, see examples/clue.py}")
shift 2
cd "$(dirname "$0")/.."
exec python examples/clue.py --model_folder="$model" --clue_data="$data" --output_dir=out/clue "$@"
