# syntax=docker/dockerfile:1
# docker build . (or `make image`, which adds the version)
# What ends up in the image is listed in deploy/image.files; `go test ./deploy/...` holds the two together.
FROM golang:1.26-bookworm AS build
ARG VERSION=dev
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -tags grpcnotrace -ldflags "-s -w -X main.version=${VERSION}" -o /out/drivebay ./cmd/drivebay

FROM debian:bookworm-slim
RUN apt-get update \
 && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
      btrfs-progs \
      cryptsetup-bin \
      drbd-utils \
      e2fsprogs \
      ledmon \
      lvm2 \
      mount \
      nvme-cli \
      smartmontools \
      thin-provisioning-tools \
      util-linux \
      xfsprogs \
 && rm -rf /var/lib/apt/lists/*
COPY --from=build /out/drivebay /usr/local/bin/drivebay
COPY examples/drivebay.yaml deploy/prometheus/drivebay.rules.yaml deploy/grafana/drivebay.json /usr/share/drivebay/
COPY LICENSE THIRD_PARTY /usr/share/doc/drivebay/
ENTRYPOINT ["/usr/local/bin/drivebay"]
CMD ["serve"]
