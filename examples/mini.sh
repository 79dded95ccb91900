#!/usr/bin/env bash
# The model of the package (nezha_tf.load("mini")), from the data sets to a folder of 11 MB.
#
#   examples/mini.sh data
#
# examples/mini_corpus.py tells what is in the data folder. The model is in out/mini/model. What
# is done already is not done again; an interrupted training goes on.
set -euo pipefail
data=$(realpath "${1:?the folder of the data sets, see examples/mini_corpus.py}")
cd "$(dirname "$0")/.."
out=out/mini
corpus=$out/corpus.txt
vocab=$out/vocab.txt
mkdir -p $out

[ -e $corpus ] || python examples/mini_corpus.py --data="$data" --output_file=$corpus
[ -e $vocab ] || python tools/build_vocab.py --input_file=$corpus --output_file=$vocab
for length in 128 512; do
  flags=mini_$length
  [ $length = 128 ] && flags=mini
  python tools/create_pretraining_data.py --flagfile=configs/${flags}_data.flags \
    --input_file=$corpus --vocab_file=$vocab
  python run_pretraining.py --flagfile=configs/$flags.flags --vocab_file=$vocab
done
[ -e $out/model ] || python tools/convert_checkpoint.py --from=$out/length_512 \
  --to=$out/model --dtype=float16
