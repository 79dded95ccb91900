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
python tools/create_pretraining_data.py --flagfile=configs/small_data.flags \
  --input_file="$corpus" --vocab_file=$vocab \
  --output_file=$out/train.tfrecord --eval_output_file=$out/eval.tfrecord

files() { echo --train_file="$data/$1/train.$2" --eval_file="$data/$1/dev.$2"; }
job() {
  local task=$1 start=$2 from=--vocab_file=$vocab
  [ $start = random ] || from+=" --init_checkpoint=$out/pretraining/model.ckpt-1000"
  from+=" --output_dir=$out/$task/$start"
  case $task in
    pretraining) python run_pretraining.py --flagfile=configs/understanding_pretraining.flags ;;
    sentiment) python run_classifier.py --flagfile=configs/sentiment.flags $from \
      $(files sentiment tsv) ;;
    ocnli) python run_classifier.py --flagfile=configs/ocnli.flags $from --data_dir="$data/ocnli" ;;
    people_daily_ner) python run_ner.py --flagfile=configs/people_daily_ner.flags $from \
      $(files people_daily_ner txt) ;;
    cmrc2018) python run_mrc.py --flagfile=configs/cmrc2018.flags $from $(files cmrc2018 json) ;;
  esac > $out/$task.$start.log 2>&1 || { tail -1 $out/$task.$start.log; exit 255; }
  echo "$(date +%T) $task from $start weights: done"
}
export -f files job
export data out vocab

# Two at a time with a thread each: steps as small as these do not divide well. The model is
# pretrained long before the first of its tasks is due; a job that fails ends what is to come.
export TF_NUM_INTRAOP_THREADS=1 TF_NUM_INTEROP_THREADS=1
{
  echo pretraining random
  for start in random pretrained; do
    for task in sentiment people_daily_ner cmrc2018 ocnli; do echo $task $start; done
  done
} | xargs -P 2 -L 1 bash -c 'job "$@"' job
python examples/linear_baseline.py "$data/sentiment/train.tsv" "$data/sentiment/dev.tsv"
python examples/compare_starts.py $out
