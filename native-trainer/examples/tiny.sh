# For the checks of the examples: makes tiny data in a temporary folder and goes there. AKIN is the program.
: "${AKIN:=akin}"
AKIN=$(realpath "$(command -v "$AKIN")")
export AKIN
npy=$here/../npy
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
# A folder with a space and a quote in its name: commands are quoted.
mkdir "it's here"
cp "$npy"/gallery.* "it's here"
eval_options=(--queries "it's here/gallery.npy" --query-labels "it's here/gallery.csv" --levels kind,variety --bootstrap 50)
"$AKIN" biomorphs data --branching 2,2,3 --images-per-class 4 --side 16
cp "$npy/../tiny.toml" .
cat >>tiny.toml <<'TOML'

[compare]
losses = ["norm_softmax", "happier"]
seeds = [0]
tune = [{ key = "optimizer.lr_head", values = [1e-3, 1e-2] }, { key = "optimizer.lr_proxies", values = [1e-2, 1e-1] }]
validation_fraction = 0.5
TOML

# expect_same WHAT ONE OTHER: fails unless two files are equal.
expect_same() {
  diff "$2" "$3" >/dev/null || {
    printf '%s differs from that of one process\n' "$1" >&2
    exit 1
  }
  printf '%s is that of one process\n' "$1"
}

# expect_failure WHAT COMMAND…: fails unless the command fails.
expect_failure() {
  if "${@:2}" >/dev/null 2>&1; then
    printf '%s were not refused\n' "$1" >&2
    exit 1
  fi
  printf '%s are refused\n' "$1"
}

# scores TABLE: table.csv without the columns for seconds per step and peak memory.
scores() { grep -v '^#' "$1" | sed -E 's/,[^,]*,[^,]*(,[^,]*,[^,]*)$/\1/'; }
