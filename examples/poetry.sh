#!/usr/bin/env bash
# A small model that writes regular Chinese poems: a form and a title in, a poem out. How many of
# its poems have the lines of their form is counted before training and after it.
#
#   examples/poetry.sh folder [flags for the training, such as --num_train_steps=2000]
#
# The folder has train.jsonl.gz and dev.jsonl with a poem a line:
# {"form": "五言绝句", "title": ..., "text": ...}. Results are in out/poetry. What is trained already is
# not trained again.
set -euo pipefail
poems=$(realpath "${1:?the folder of train.jsonl.gz and dev.jsonl}")
shift
for flag in "$@"; do
  [[ ! $flag =~ ^--?output_dir ]] || {
    echo "poetry.sh: error: $flag: the results are in a folder of their own; leave it out" >&2
    exit 1
  }
done
cd "$(dirname "$0")/.."
out=out/poetry
vocab=$out/vocab.txt
mkdir -p $out

python examples/poetry.py corpus "$poems/train.jsonl.gz" $out/train.txt
python examples/poetry.py corpus "$poems/dev.jsonl" $out/eval.txt
python examples/poetry.py prompts "$poems/dev.jsonl" $out/prompts.jsonl

[ -e $vocab ] || python tools/build_vocab.py --input_file=$out/train.txt --output_file=$vocab \
  --vocab_size=8000
for part in train eval; do
  python tools/create_pretraining_data.py --input_file=$out/$part.txt --vocab_file=$vocab \
    --output_file=$out/$part.tfrecord --masking=none --pair=none --max_seq_length=128
done

# A step with a rate of 0 leaves the random weights that the training begins with.
python run_pretraining.py --flagfile=configs/poetry.flags --vocab_file=$vocab \
  --output_dir=$out/random --num_train_steps=1 --num_warmup_steps=0 --learning_rate=0
python run_pretraining.py --flagfile=configs/poetry.flags --vocab_file=$vocab "$@"

for start in random model; do
  python tools/generate_text.py --model_folder=$out/$start --input_file=$out/prompts.jsonl \
    --output_file=$out/$start.jsonl --decoding=sample --top_p=0.9 --max_target_length=72 \
    --predict_batch_size=50
  python examples/poetry.py fit $out/$start.jsonl
done
