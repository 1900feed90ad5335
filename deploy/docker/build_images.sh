#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds every image with buildah: no daemon, no registry, no privileges beyond chroot. The base is
# made by debootstrap. Needs the Debian packages buildah and debootstrap, and root.
#   deploy/docker/build_images.sh [TARGET...]      images localhost/sextant/TARGET
set -euo pipefail
cd "$(dirname "$0")/../.."

targets=("$@")
[ ${#targets[@]} -gt 0 ] || targets=(operator_cost network_sim orchestrator calibration sextant)
base=localhost/sextant/debian:bookworm
mirror=${SEXTANT_DEBIAN_MIRROR:-http://deb.debian.org/debian}
export BUILDAH_ISOLATION=chroot
# The one storage driver that works everywhere, also inside a container.
export STORAGE_DRIVER=${STORAGE_DRIVER:-vfs}

if ! buildah inspect --type image "$base" >/dev/null 2>&1; then
  root=$(mktemp -d)
  trap 'rm -rf "$root"' EXIT
  debootstrap --variant=minbase bookworm "$root" "$mirror"
  rm -rf "$root"/var/lib/apt/lists/* "$root"/var/cache/apt/*
  container=$(buildah from scratch)
  buildah add --quiet "$container" "$root" / >/dev/null
  buildah config --cmd /bin/bash "$container"
  buildah commit --quiet "$container" "$base" >/dev/null
  buildah rm "$container" >/dev/null
fi

for target in "${targets[@]}"; do
  # --layers: the targets share the build stage.
  buildah bud --layers --format docker --build-arg "BASE=$base" -f deploy/docker/Dockerfile \
    --target "$target" -t "localhost/sextant/$target" .
done
buildah images --filter 'reference=localhost/sextant/*'
