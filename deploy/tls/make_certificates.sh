#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Certificates to try TLS with: for development, not for production (the CA's key lies beside them).
#
#   make_certificates.sh FOLDER [NAME...]     NAME: default server client
#
# Makes FOLDER/ca.crt where it is missing, and for each NAME FOLDER/NAME.crt and NAME.key: common
# name NAME, valid for NAME, localhost, 127.0.0.1 and SEXTANT_TLS_HOSTS (comma-separated DNS names).
# Run again with a NAME to replace its certificate: servers take it up without a restart.
set -euo pipefail
[ $# -ge 1 ] || { sed -n '3,9p' "$0" >&2; exit 2; }
folder=$1
shift
[ $# -gt 0 ] || set -- server client
umask 077
mkdir -p "$folder"
days=${SEXTANT_TLS_DAYS:-30}

if [ ! -e "$folder/ca.crt" ]; then
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days "$days" \
    -subj "/CN=sextant development CA" -keyout "$folder/ca.key" -out "$folder/ca.crt" 2>/dev/null
fi
for name in "$@"; do
  names="DNS:$name,DNS:localhost,IP:127.0.0.1"
  [ -z "${SEXTANT_TLS_HOSTS:-}" ] || names="$names,DNS:${SEXTANT_TLS_HOSTS//,/,DNS:}"
  work=$(mktemp -d "$folder/.new-XXXXXX")
  openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj "/CN=$name" \
    -keyout "$work/key" -out "$work/request" 2>/dev/null
  openssl x509 -req -in "$work/request" -CA "$folder/ca.crt" -CAkey "$folder/ca.key" \
    -CAcreateserial -days "$days" -extfile <(printf 'subjectAltName=%s\n' "$names") \
    -out "$work/crt" 2>/dev/null
  # A server that reads between the two moves finds a pair that does not match, and keeps the old.
  mv "$work/key" "$folder/$name.key"
  mv "$work/crt" "$folder/$name.crt"
  rm -r "$work"
done
