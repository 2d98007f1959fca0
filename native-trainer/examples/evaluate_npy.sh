#!/bin/sh
# Evaluates embeddings from .npy files, no matter which program made them. Each file needs a CSV file of labels, with
# one column per level and one row per embedding. In Python, `numpy.save("queries.npy", embeddings)` writes such a file.
#
#   sh native-trainer/examples/evaluate_npy.sh
#
# Two photos of fruit rank a gallery of five. For one of them an apple of another variety comes before the second apple
# of the same variety. AP at the level `variety` counts that as a full mistake, H-AP as a smaller one:
#
# level    queries      AP
# kind           2  100.00
# variety        2   91.67
#
#             queries   H-AP
# all levels        2  96.67
#
# 2 queries, each ranking 5 items by cosine; ties stable; the query itself not counted; relevance plain
set -eu
cd "$(dirname "$0")/npy"
exec "${AKIN:-akin}" eval \
  --queries queries.npy --query-labels queries.csv \
  --gallery gallery.npy --gallery-labels gallery.csv \
  --levels kind,variety --metrics h_ap,ap --relevance plain
