#!/bin/sh
# Proves without a container engine that the image gets the files of
# deploy/image.files: run it from anywhere, it needs Go (and checks more where apt is).
set -eu
cd "$(dirname "$0")/.."
exec go test -count=1 -v -run '^TestImage' ./deploy
