#!/bin/sh
# The steps that build the worker's image, one per layer: the Dockerfile runs them, and so does the test that has no Docker.
set -eu

case "${1:-}" in
  install)
    # Without scripts: the sources are not there yet, so that this layer is kept while the dependencies stay the same.
    npm ci --ignore-scripts --no-audit --no-fund
    ;;
  build)
    npm run build
    ;;
  prune)
    npm prune --omit=dev --ignore-scripts --no-audit --no-fund
    ;;
  *)
    echo "usage: image.sh install | build | prune" >&2
    exit 2
    ;;
esac
