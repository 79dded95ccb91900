#!/usr/bin/env bash
# Question generation on reading comprehension data, from three starts: random weights, a model
# pretrained on the bidirectional objective alone, and one pretrained on UniLM's mixture.
#
#   examples/question_generation.sh corpus.txt.gz folder
#
# The corpus has a sentence a line and a blank line between documents; the folder has train.json
# and dev.json in SQuAD's form. Results are in out/question_generation. What is done already is
# not done again.
set -euo pipefail
corpus=$(realpath "${1:?the corpus}")
questions=$(realpath "${2:?the folder of train.json and dev.json}")
cd "$(dirname "$0")/.."
small=out/unilm_small out=out/question_generation
vocab=$out/vocab.txt

[ -e $vocab ] || python tools/build_vocab.py --input_file="$corpus" --output_file=$vocab \
  --vocab_size=8000
python tools/create_pretraining_data.py --flagfile=configs/unilm_small_data.flags \
  --input_file="$corpus" --vocab_file=$vocab
for part in train dev; do
  python tools/make_question_generation_data.py --input_file="$questions/$part.json" \
    --output_file=$out/$part.jsonl
done

python run_pretraining.py --flagfile=configs/unilm_small.flags --vocab_file=$vocab
python run_pretraining.py --flagfile=configs/unilm_small.flags --vocab_file=$vocab \
  --objectives=bidirectional --output_dir=$small/bidirectional

for start in nothing bidirectional mixture; do
  options=(--output_dir=$out/$start)
  [ $start = nothing ] || options+=(--init_checkpoint=$small/$start/model.ckpt-750)
  python run_seq2seq.py --flagfile=configs/question_generation.flags --vocab_file=$vocab \
    --predict_file=$out/dev.jsonl --do_predict "${options[@]}"
done
