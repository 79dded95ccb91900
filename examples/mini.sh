#!/usr/bin/env bash
# A model like that of the package (nezha_tf.load("mini")), from the data sets to a folder of 11 MB,
# in two hours.
#
#   examples/mini.sh data
#
# examples/mini_corpus.py tells what is in the data folder. The model is in out/mini/model. What
# is done already is not done again; an interrupted training goes on.
set -euo pipefail
data=$(realpath "${1:?the folder of the data sets, see examples/mini_corpus.py}")
cd "$(dirname "$0")/.."
out=out/mini
vocab=nezha_tf/resources/mini/vocab.txt
mkdir -p $out

[ -e $out/modern.txt ] || python examples/mini_corpus.py --data="$data" --output_dir=$out
for length in 128 512; do
  for part in books modern; do
    python tools/create_pretraining_data.py --flagfile=configs/mini_data.flags \
      --max_seq_length=$length --input_file=$out/$part.txt --vocab_file=$vocab \
      --output_file=$out/${part}_$length.tfrecord \
      --eval_output_file=$out/eval_${part}_$length.tfrecord
  done
  flags=mini_$length
  [ $length = 128 ] && flags=mini
  python run_pretraining.py --flagfile=configs/$flags.flags --vocab_file=$vocab
done
[ -e $out/model ] || python tools/convert_checkpoint.py --from=$out/length_512 \
  --to=$out/model --dtype=float16
