# What tests/run and tests/full share: the messages of their stages, packages from Debian, and a folder that is removed
# at the end.
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

# install_from_debian PROGRAM HINT PACKAGE...: installs Debian packages, if this is Debian and the user is root.
install_from_debian() {
  local program=$1 hint=$2
  shift 2
  if [[ ! -e /etc/debian_version || $(id -u) != 0 ]]; then
    fail "$program is not installed" "$hint"
  fi
  installing "$* (apt-get)"
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >"$scratch/apt.log" || {
    cat "$scratch/apt.log" >&2
    return 1
  }
}

# The process group of a command in the background, which ends with the script.
background=''
scratch=$(mktemp -d)

clean_up() {
  local status=$?
  [[ -z $background ]] || kill -- "-$background" 2>/dev/null || true
  rm -rf "$scratch"
  ((status == 0)) || printf '\n=== FAILED: %s, after %d s\n' "$stage" $((SECONDS - began)) >&2
}
trap clean_up EXIT
