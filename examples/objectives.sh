#!/usr/bin/env bash
# Pretraining objectives side by side: each trains the same small model on the same text, and each
# model is a start for three tasks, beside random weights.
#
#   examples/objectives.sh corpus.txt pairs folder [objective...]
#
# The corpus has a sentence a line and a blank line between documents; the folder of pairs has
# train.jsonl.gz and dev.jsonl of {"src": ..., "tgt": ...}; the last folder has
# sentiment/{train,dev}.tsv and people_daily_ner/{train,dev}.txt. Without names all objectives are
# run. Results are in out/objectives. What is done already is not done again.
set -euo pipefail
corpus=$(realpath "${1:?the corpus}") pairs=$(realpath "${2:?the folder of pairs}")
data=$(realpath "${3:?the folder of the tasks}")
shift 3
cd "$(dirname "$0")/.."
out=out/objectives
vocab=$out/vocab.txt
objectives=("$@")
[ $# -gt 0 ] || objectives=(bidirectional causal permutation replaced_tokens seq2seq
  left_to_right right_to_left span_corruption infilling mass prefix)

mkdir -p $out
[ -e $vocab ] || python tools/build_vocab.py --input_file="$corpus" --output_file=$vocab \
  --vocab_size=8000 --min_character_count=10
# UniLM's sequence-to-sequence objective needs two segments, the others read running text.
for pair in none nsp; do
  python tools/create_pretraining_data.py --input_file="$corpus" --vocab_file=$vocab \
    --output_file=$out/$pair/train.tfrecord --eval_output_file=$out/$pair/eval.tfrecord \
    --eval_share=0.02 --masking=none --pair=$pair
done
# Pairs from all books, as each book has its own style.
[ -e $out/translation.jsonl ] || gzip -dc "$pairs/train.jsonl.gz" |
  awk 'NR % 46 == 1 && n++ < 20000' > $out/translation.jsonl

program() {
  local task=$1 start=$2 pair=none result=$out/$1/$2
  [ ! -e $result/eval_results.json ] || return 0
  [ $start != seq2seq ] || pair=nsp
  local from=(--vocab_file=$vocab --output_dir=$result --bert_config_file=configs/unilm_small.json)
  [ $start = random ] || from+=(--init_checkpoint=$out/pretraining/$start/model.ckpt-1500)
  case $task in
    pretraining) python run_pretraining.py --flagfile=configs/objectives.flags \
      --objectives=$start --output_dir=$result \
      --input_file="$out/$pair/train*.tfrecord" --eval_file="$out/$pair/eval*.tfrecord" ;;
    sentiment) python run_classifier.py --flagfile=configs/sentiment.flags --num_seeds=1 \
      "${from[@]}" --train_file="$data/sentiment/train.tsv" --eval_file="$data/sentiment/dev.tsv" ;;
    people_daily_ner) python run_ner.py --flagfile=configs/people_daily_ner.flags --num_seeds=1 \
      "${from[@]}" --train_file="$data/people_daily_ner/train.txt" \
      --eval_file="$data/people_daily_ner/dev.txt" ;;
    translation) python run_seq2seq.py --flagfile=configs/translation.flags "${from[@]}" \
      --train_file=$out/translation.jsonl --eval_file="$pairs/dev.jsonl" ;;
  esac > $result.log 2>&1 || { tail -1 $result.log; return 255; }
  echo "$(date +%T) $task from $start: done"
}
chain() {
  [ $1 = random ] || program pretraining $1
  for task in sentiment people_daily_ner translation; do program $task $1; done
}
export -f program chain
export data out pairs vocab

# Two at a time with a thread each: steps as small as these do not divide well.
mkdir -p $out/{pretraining,sentiment,people_daily_ner,translation}
export TF_NUM_INTRAOP_THREADS=1 TF_NUM_INTEROP_THREADS=1
printf '%s\n' "${objectives[@]}" random | xargs -P 2 -L 1 bash -euc 'chain "$@"' chain
python examples/compare_starts.py $out
