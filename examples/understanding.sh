#!/usr/bin/env bash
# Four tasks of understanding, each from random weights and from a small NEZHA pretrained on a
# corpus; and for the reviews what a linear model makes of them.
#
#   examples/understanding.sh corpus.txt.gz folder
#
# The corpus has a sentence a line and a blank line between documents; the folder has
# sentiment/{train,dev}.tsv, ocnli/{train,dev}.jsonl, people_daily_ner/{train,dev}.txt and
# cmrc2018/{train,dev}.json. Results are in out/understanding. What is done already is not done
# again.
set -euo pipefail
corpus=$(realpath "${1:?the corpus}") data=$(realpath "${2:?the folder of the tasks}")
cd "$(dirname "$0")/.."
out=out/understanding
vocab=$out/vocab.txt

[ -e $vocab ] || python tools/build_vocab.py --input_file="$corpus" --output_file=$vocab \
  --vocab_size=8000
[ -e $out/train.tfrecord ] || python tools/create_pretraining_data.py \
  --flagfile=configs/small_data.flags --input_file="$corpus" --vocab_file=$vocab \
  --output_file=$out/train.tfrecord --eval_output_file=$out/eval.tfrecord
python run_pretraining.py --flagfile=configs/understanding_pretraining.flags

files() { echo --train_file="$data/$1/train.$2" --eval_file="$data/$1/dev.$2"; }
tasks() {
  local start=$1
  shift
  python run_classifier.py --flagfile=configs/sentiment.flags $(files sentiment tsv) \
    "$@" --output_dir=$out/sentiment/$start
  python run_classifier.py --flagfile=configs/ocnli.flags --data_dir="$data/ocnli" \
    "$@" --output_dir=$out/ocnli/$start
  python run_ner.py --flagfile=configs/people_daily_ner.flags $(files people_daily_ner txt) \
    "$@" --output_dir=$out/people_daily_ner/$start
  python run_mrc.py --flagfile=configs/cmrc2018.flags $(files cmrc2018 json) \
    "$@" --output_dir=$out/cmrc2018/$start
}

# Side by side with a thread each: steps as small as these do not divide well. The one behind is a
# group of processes, which ends with the script.
export TF_NUM_INTRAOP_THREADS=1 TF_NUM_INTEROP_THREADS=1
set -m
tasks random --vocab_file=$vocab > $out/random.log 2>&1 &
set +m
random=$!
trap 'kill -- -$random 2> /dev/null || true' EXIT
tasks pretrained --vocab_file=$vocab --init_checkpoint=$out/pretraining/model.ckpt-1000
wait $random || { tail -1 $out/random.log; exit 1; }
python examples/linear_baseline.py "$data/sentiment/train.tsv" "$data/sentiment/dev.tsv"
python examples/compare_starts.py $out
