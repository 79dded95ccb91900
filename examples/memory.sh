#!/usr/bin/env bash
# How much a memory of earlier text helps: a small model is trained with a memory of 64 tokens and
# one without, and both are evaluated with memories of several lengths.
#
#   examples/memory.sh corpus.txt
#
# The corpus has a sentence a line and a blank line between documents. Results are in out/memory.
# What is done already is not done again.
set -euo pipefail
corpus=$(realpath "${1:?the corpus}")
cd "$(dirname "$0")/.."
# The picture comes last, hours from now.
python -c 'import matplotlib' 2>/dev/null || {
  echo "memory.sh: error: the picture needs matplotlib: pip install -e '.[plot]'" >&2
  exit 1
}
out=out/memory
vocab=$out/vocab.txt

mkdir -p $out
[ -e $vocab ] || python tools/build_vocab.py --input_file="$corpus" --output_file=$vocab \
  --vocab_size=8000 --min_character_count=10
python tools/create_pretraining_data.py --input_file="$corpus" --vocab_file=$vocab \
  --output_file=$out/train.tfrecord --eval_output_file=$out/eval.tfrecord \
  --eval_share=0.02 --max_seq_length=64 --masking=none --pair=stream

job() {
  local folder=$out/$1
  python run_pretraining.py --flagfile=configs/memory.flags --output_dir=$folder \
    --memory_length=$2 > $folder.log 2>&1 || { tail -1 $folder.log; exit 255; }
  for length in 0 16 32 64 128 256 512; do
    [ -e $folder/memory_$length.json ] || {
      python run_pretraining.py --flagfile=configs/memory.flags --output_dir=$folder --nodo_train \
        --memory_length=$2 --eval_memory_length=$length >> $folder.log 2>&1 ||
        { tail -1 $folder.log; exit 255; }
      mv $folder/eval_results.json $folder/memory_$length.json
    }
  done
}
export -f job
export out

# Two at a time with a thread each: steps as small as these do not divide well.
export TF_NUM_INTRAOP_THREADS=1 TF_NUM_INTEROP_THREADS=1
printf '%s\n' 'with 64' 'without 0' | xargs -P 2 -L 1 bash -euc 'job "$@"' job
python examples/memory_lengths.py $out
