#!/usr/bin/env bash
# Translation of classical Chinese by run_seq2seq.py: one pass over 100,000 pairs from random weights,
# from mini, and from mini after a second pretraining on both sides; and into classical Chinese.
#
#   examples/classical.sh classical_modern [flags of run_ablation.py]
#
# The folder has train.jsonl.gz and dev.jsonl with a pair a line:
# {"doc": book and chapter, "src": classical, "tgt": modern}. The table of BLEU-4 and chrF is in
# out/classical/ablation.md; then ten pairs at even distances of dev.jsonl are translated. What is
# trained already is not trained again; an interrupted training goes on.
set -euo pipefail
pairs=$(realpath "${1:?the folder of train.jsonl.gz and dev.jsonl}")
shift
for flag in "$@"; do
  [[ ! $flag =~ ^--?output_dir ]] || {
    echo "classical.sh: error: $flag: the results are in a folder of their own; leave it out" >&2
    exit 1
  }
done
cd "$(dirname "$0")/.."
out=out/classical

python tools/run_ablation.py --ablation_file=configs/ablations/classical.toml \
  --paths=pairs="$pairs" --output_dir=$out "$@"
python examples/sample_lines.py --input_file="$pairs/dev.jsonl" --output_file=$out/ten.jsonl \
  --count=10
for model in $out/translation/*/; do
  columns=
  case $model in
    */into_classical/) columns="--source_column=tgt --target_column=src" ;;
  esac
  # The first seed is enough to be read.
  folder=$(find "$model" -maxdepth 1 -type d -name 'seed*' | sort | head -n 1)
  python tools/generate_text.py --model_folder="$folder" --input_file=$out/ten.jsonl \
    --output_file="${model%/}.jsonl" --decoding=beam $columns
done
