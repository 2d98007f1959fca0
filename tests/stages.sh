# What tests/run and tests/full share: the messages of their stages, and a folder that is removed at the end.
# shellcheck shell=bash

stage='' began=0

stage() {
  close_stage
  stage=$1 began=$SECONDS
  printf '\n=== %s\n' "$stage"
}

close_stage() {
  [[ -z $stage ]] || printf '=== %s: %d s\n' "$stage" $((SECONDS - began))
}

# fail MESSAGE HINT: prints what is wrong and what to do, and exits.
fail() {
  printf 'error: %s\n  hint: %s\n' "$1" "$2" >&2
  exit 1
}

installing() { printf 'installing %s\n' "$*"; }

scratch=$(mktemp -d)
trap 'status=$?; rm -rf "$scratch"; ((status == 0)) || printf "\n=== FAILED: %s, after %d s\n" "$stage" $((SECONDS - began)) >&2' EXIT
